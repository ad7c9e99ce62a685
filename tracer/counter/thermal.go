package counter

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/ebpfprof/ebpfprof/tracer/procfile"
)

// thermalSource is the temperatures of thermal zones, and for how long Intel's processors
// were slowed down for heat.
// https://docs.kernel.org/driver-api/thermal/sysfs-api.html, arch/x86/kernel/cpu/mce/therm_throt.c
type thermalSource struct {
	zones []zone
	slow  []throttled
}

type zone struct {
	at   place
	file string
}

// throttled are the counters of a processor's core, or of the package that it is in.
type throttled struct {
	at      place
	dir     string
	metrics []metric
}

var coreThrottles = []metric{
	{"core_throttle_count", "cpu_throttles", Count, 1, true},
	{"core_throttle_total_time_ms", "cpu_throttled", Nanoseconds, 1e6, true},
}

var packageThrottles = []metric{
	{"package_throttle_count", "cpu_throttles", Count, 1, true},
	{"package_throttle_total_time_ms", "cpu_throttled", Nanoseconds, 1e6, true},
}

func openThermal(f Files) (source, error) {
	var s thermalSource
	dir := f.path("sys/class/thermal")
	for _, name := range list(dir, "thermal_zone") {
		at := device(name)
		if kind, err := procfile.Read(filepath.Join(dir, name, "type"), 0); err == nil {
			at = at.within(strings.TrimSpace(string(kind))) // x86_pkg_temp, acpitz: several may be called the same
		}
		s.zones = append(s.zones, zone{at, filepath.Join(dir, name, "temp")})
	}
	cpus, packages := f.path("sys/devices/system/cpu"), map[string]bool{}
	for _, name := range list(cpus, "cpu") {
		counters := filepath.Join(cpus, name, "thermal_throttle")
		if _, err := os.Stat(counters); err != nil {
			continue
		}
		s.slow = append(s.slow, throttled{device(name), counters, coreThrottles})
		id, err := procfile.Read(filepath.Join(cpus, name, "topology", "physical_package_id"), 0)
		if number := strings.TrimSpace(string(id)); err == nil && !packages[number] {
			packages[number] = true
			s.slow = append(s.slow, throttled{device("package-" + number), counters, packageThrottles})
		}
	}
	if len(s.zones)+len(s.slow) == 0 {
		return nil, fmt.Errorf("no thermal zone in %s, and no processor that counts its throttling", dir)
	}
	return s, nil
}

func (s thermalSource) read(r *round) (failed error) {
	for _, z := range s.zones {
		text, err := r.read(z.file)
		if text = strings.TrimSpace(text); err != nil || strings.HasPrefix(text, "-") { // what a zone without a reading says
			firstOf(&failed, err)
			continue
		}
		degrees, ok := parseNumber(text)
		if !ok {
			firstOf(&failed, fmt.Errorf("%s holds %.40q, which is no number", z.file, text))
			continue
		}
		r.gauge(z.at, "temperature", Celsius, degrees*1e-3)
	}
	for _, t := range s.slow {
		firstOf(&failed, r.addFiles(t.at, t.dir, t.metrics))
	}
	return failed
}
