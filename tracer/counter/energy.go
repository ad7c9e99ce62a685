package counter

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/ebpfprof/ebpfprof/tracer/procfile"
)

// energySource is RAPL as the powercap framework tells it: what packages, their cores and
// their memory have used. Since Linux 5.10 it takes root to read.
// https://docs.kernel.org/power/powercap/powercap.html
type energySource struct{ domains []*domain }

// domain is a counter of microjoules that begins anew at span.
type domain struct {
	at          place
	file        string
	span        float64
	last, total float64
	begun       bool
}

func openEnergy(f Files) (source, error) {
	dir := f.path("sys/class/powercap")
	s := &energySource{}
	for _, name := range list(dir, "intel-rapl:") { // AMD's processors have it under that name, too
		zone := filepath.Join(dir, name)
		if d := openDomain(zone, ""); d != nil {
			s.domains = append(s.domains, d)
		}
		for _, part := range list(dir, name+":") {
			if d := openDomain(filepath.Join(dir, part), zone); d != nil {
				s.domains = append(s.domains, d)
			}
		}
	}
	if len(s.domains) == 0 {
		return nil, fmt.Errorf("no domain of RAPL that can be read in %s", dir)
	}
	return s, nil
}

// openDomain is nil where there is nothing to read. A part is called by what it is in:
// package-0/dram.
func openDomain(dir, within string) *domain {
	name, err := procfile.Read(filepath.Join(dir, "name"), 0)
	if err != nil {
		return nil
	}
	d := &domain{file: filepath.Join(dir, "energy_uj")}
	whole := strings.TrimSpace(string(name))
	if within != "" {
		if outer, err := procfile.Read(filepath.Join(within, "name"), 0); err == nil {
			whole = strings.TrimSpace(string(outer)) + "/" + whole
		}
	}
	d.at = device(whole)
	if span, err := procfile.Read(filepath.Join(dir, "max_energy_range_uj"), 0); err == nil {
		d.span, _ = parseNumber(strings.TrimSpace(string(span)))
	}
	file, err := os.Open(d.file)
	if err != nil {
		return nil
	}
	file.Close()
	return d
}

func (s *energySource) read(r *round) (failed error) {
	for _, d := range s.domains {
		now, err := r.number(d.file)
		if err != nil {
			firstOf(&failed, err)
			continue
		}
		if d.begun {
			used := now - d.last
			if used < 0 {
				used += d.span // it went once around, which takes a minute and more
			}
			if used < 0 {
				d.total = 0 // it began anew, and nobody knows where
			} else {
				d.total += used
			}
		}
		d.last, d.begun = now, true
		r.total(d.at, "energy", Joules, d.total*1e-6)
	}
	return failed
}
