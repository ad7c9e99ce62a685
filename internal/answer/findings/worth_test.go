package findings

import (
	"bytes"
	"math"
	"strings"
	"testing"

	"github.com/ebpfprof/ebpfprof/internal/answer/findings/thresholds"
)

// TestAHeadroomIsWorthDeviceHours: its share of 24 hours of the one device, and nothing where there is no device.
func TestAHeadroomIsWorthDeviceHours(t *testing.T) {
	r := run(t, thresholds.Default(), onDevice(100, copies(20, 4096, 100*us)))
	f := r.find("small_copies")
	if f == nil || f.DeviceHoursADay == nil || math.Abs(*f.DeviceHoursADay-24**f.HeadroomPercent/100) > 1e-9 {
		t.Fatalf("%+v", f)
	}
	r.Price(2.5)
	if math.Abs(*f.PriceADay-2.5**f.DeviceHoursADay) > 1e-9 {
		t.Errorf("a price of %v for %v hours", *f.PriceADay, *f.DeviceHoursADay)
	}
	var text bytes.Buffer
	if err := r.WriteText(&text); err != nil || !strings.Contains(text.String(), "device-hours a day") {
		t.Errorf("%v\n%s", err, text.String())
	}
	if host := run(t, thresholds.Default(), copying(40, always(1*ms))).find("layout"); host == nil || host.DeviceHoursADay != nil {
		t.Errorf("without a device: %+v", host)
	}
}
