package counter

import (
	"fmt"
	"path/filepath"
	"strings"
)

// pressureSource is /proc/pressure: how long tasks waited for a resource. The
// totals are exact; the kernel's own averages are left to the reader.
// https://docs.kernel.org/accounting/psi.html
type pressureSource struct{ dir string }

var pressureResources = []string{"cpu", "memory", "io", "irq"}

func openPressure(f Files) (source, error) {
	s, err := present(pressureSource{f.path("proc/pressure")}, f.path("proc/pressure/cpu"))
	if err != nil {
		return nil, fmt.Errorf("%w: the kernel was built without CONFIG_PSI, or started without psi=1", err)
	}
	return s, nil
}

func (s pressureSource) read(r *round) (failed error) {
	for _, resource := range pressureResources {
		text, err := r.read(filepath.Join(s.dir, resource))
		firstOf(&failed, err)
		addPressure(r, machine, "pressure_"+resource, text)
	}
	return failed
}

func addPressure(r *round, at place, name, text string) {
	for _, p := range parsePressure(text) {
		r.total(at, name+"_"+p.share, Nanoseconds, p.microseconds*1e3)
	}
}

// stall is one line of a pressure file: some (at least one task waited) or full
// (all did, so that nothing ran).
type stall struct {
	share        string
	microseconds float64
}

// parsePressure reads "some avg10=0.00 avg60=0.00 avg300=0.00 total=123".
func parsePressure(text string) (stalls []stall) {
	for line := range strings.Lines(text) {
		share, rest, _ := strings.Cut(line, " ")
		if share != "some" && share != "full" {
			continue
		}
		for _, field := range strings.Fields(rest) {
			if total, ok := strings.CutPrefix(field, "total="); ok {
				if v, ok := parseNumber(total); ok {
					stalls = append(stalls, stall{share, v})
				}
			}
		}
	}
	return stalls
}
