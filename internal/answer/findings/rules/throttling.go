package rules

import (
	"fmt"

	"github.com/ebpfprof/ebpfprof/internal/answer/findings/evidence"
	"github.com/ebpfprof/ebpfprof/internal/answer/findings/thresholds"
	"github.com/ebpfprof/ebpfprof/internal/model/graph"
	"github.com/ebpfprof/ebpfprof/internal/model/timeline"
)

// throttles are the counters of reasons for which a device that is at work runs
// slower than it could: heat, power, hardware. Being idle, or clocks that were set on
// purpose, are none.
const throttles = "'gpu_throttle_power_cap', 'gpu_throttle_hardware', 'gpu_throttle_thermal', " +
	"'gpu_throttle_hardware_thermal', 'gpu_throttle_power_brake'"

// Throttling: a clock is held down while steps run, a device's or the processor's.
var Throttling = evidence.Rule{
	Name: "throttling", Title: "the device's clock is held down", Look: lookThrottling,
	Thresholds: []thresholds.Threshold{throttlingPercent},
}

var throttlingPercent = thresholds.Threshold{
	Name: "throttling_percent", Default: 5,
	Why: "The share of readings in which heat, power or hardware holds a device's clock down.",
}

func lookThrottling(r *evidence.Recording) ([]evidence.Candidate, error) {
	device, err := deviceThrottling(r)
	if err != nil {
		return nil, err
	}
	processor, err := processorThrottling(r)
	return append(device, processor...), err
}

// processorThrottling goes by what a processor counts itself: for how long heat slowed it down.
func processorThrottling(r *evidence.Recording) ([]evidence.Candidate, error) {
	where := fmt.Sprintf("source = 'thermal' AND name = 'cpu_throttled' AND ts_ns BETWEEN %d AND %d",
		r.Graphs[0].Step.Begin, r.Graphs[len(r.Graphs)-1].Step.Until())
	var device string
	var share float64
	err := r.DB.Row(r.Ctx, `SELECT coalesce(arg_max(device, share), ''), coalesce(max(share), 0) FROM (
		SELECT device, sum(value) / nullif(sum(period_ns), 0) AS share FROM counter
		WHERE `+where+" GROUP BY session_id, device)", nil, &device, &share)
	if err != nil || 100*share < r.Thresholds.Of(throttlingPercent) {
		return nil, err
	}
	return []evidence.Candidate{{
		Title: "heat slows the processor down", Name: "cpu_throttled, " + device,
		Evidence: evidence.Query("SELECT device, sum(value) / 1e6 AS throttled_ms, 100 * sum(value) / sum(period_ns) AS percent FROM counter\n" +
			"WHERE " + where + "\nGROUP BY 1 ORDER BY percent DESC"),
		Advice: fmt.Sprintf("The processor (%s) was slowed down for heat %.0f %% of the time. Check its cooling.", device, 100*share),
	}}, nil
}

func deviceThrottling(r *evidence.Recording) ([]evidence.Candidate, error) {
	first, last := r.Graphs[0].Step.Begin, r.Graphs[len(r.Graphs)-1].Step.Until()
	var reason string
	var share, clock, highest float64
	err := r.DB.Row(r.Ctx, fmt.Sprintf(`
		WITH c AS (SELECT * FROM counter WHERE ts_ns BETWEEN %d AND %d),
		held AS (SELECT session_id, device_id, ts_ns, max(value) AS held, arg_max(name, value) AS name FROM c WHERE name IN (%s) GROUP BY ALL),
		clocks AS (SELECT session_id, device_id, ts_ns, value FROM c WHERE name = 'gpu_clock_sm'),
		joined AS (SELECT h.*, k.value FROM held h ASOF LEFT JOIN clocks k ON k.session_id = h.session_id AND k.device_id = h.device_id
		AND k.ts_ns <= h.ts_ns)
		SELECT coalesce(mode(name) FILTER (held > 0), ''), coalesce(avg((held > 0)::INT), 0), coalesce(avg(value) FILTER (held > 0), 0),
			coalesce((SELECT max(value) FROM counter WHERE name = 'gpu_clock_sm'), 0) FROM joined`, first, last, throttles),
		nil, &reason, &share, &clock, &highest)
	if err != nil || 100*share < r.Thresholds.Of(throttlingPercent) {
		return nil, err
	}
	c := evidence.Candidate{
		Name: reason,
		Evidence: evidence.Query(fmt.Sprintf("SELECT device_id, name, avg(value) AS mean, count(*) AS readings FROM counter\n"+
			"WHERE name IN (%s, 'gpu_clock_sm') AND ts_ns BETWEEN %d AND %d GROUP BY ALL ORDER BY ALL", throttles, first, last)),
		Advice: fmt.Sprintf("The device's clock is held down in %.0f %% of the readings (%s). Look at its cooling and power limit "+
			"(nvidia-smi -q -d PERFORMANCE).", 100*share, reason),
	}
	if clock > 0 && highest > clock && onDevice(r) && !r.Graphs[0].Bounded() {
		c.Advice = fmt.Sprintf("%s It runs at %.0f instead of %.0f MHz then.", c.Advice, clock/1e6, highest/1e6)
		factor := 1 - share*(1-clock/highest)
		c.Replace = func(g *timeline.StepGraph, t graph.Times) {
			for n, s := range g.Segments {
				if s.Device {
					t.Own[n] *= factor
				}
			}
		}
	}
	return []evidence.Candidate{c}, nil
}

// onDevice says whether there is work on devices, as points in time or within bounds.
func onDevice(r *evidence.Recording) bool {
	for _, g := range r.Graphs {
		for _, s := range g.Segments {
			if s.Device {
				return true
			}
		}
	}
	return false
}
