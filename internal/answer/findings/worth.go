package findings

import (
	"context"
	"fmt"

	"github.com/ebpfprof/ebpfprof/internal/dataset"
)

const hoursADay = 24

// worth fills in what each headroom saves in a day on all devices of the job: its share of the hours that these are paid for.
func (r *Result) worth(ctx context.Context, db *dataset.DB) error {
	var devices int64
	err := db.Row(ctx, `SELECT count(DISTINCT (session_id, device_id)) FROM span
		WHERE device_id IS NOT NULL AND (layer = 'device' OR layer = 'runtime' AND category IN ('launch', 'graph', 'copy'))`, nil, &devices)
	if err != nil {
		return fmt.Errorf("counting devices: %w", err)
	}
	for i := range r.Findings {
		if share := r.Findings[i].HeadroomPercent; share != nil && devices > 0 {
			hours := *share / 100 * hoursADay * float64(devices)
			r.Findings[i].DeviceHoursADay = &hours
		}
	}
	return nil
}

// Price turns device-hours into money, by what one costs.
func (r *Result) Price(ofAnHour float64) {
	for i := range r.Findings {
		if hours := r.Findings[i].DeviceHoursADay; hours != nil {
			price := *hours * ofAnHour
			r.Findings[i].PriceADay = &price
		}
	}
}

// worthText is the worth of a finding in words, "" where it is not known.
func (f Finding) worthText() string {
	if f.DeviceHoursADay == nil || f.HeadroomMS == nil {
		return ""
	}
	text := fmt.Sprintf("worth %.1f device-hours a day", *f.DeviceHoursADay)
	if f.PriceADay != nil {
		text += fmt.Sprintf(", %.2f at the given price", *f.PriceADay)
	}
	return text
}
