package counter

import (
	"errors"
	"strings"
)

// cpuSource is /proc/stat: how each processor spent its time. See proc(5).
type cpuSource struct{ path string }

func openCPU(f Files) (source, error) {
	return present(cpuSource{f.path("proc/stat")}, f.path("proc/stat"))
}

// tick is the unit of /proc/stat: USER_HZ is 100 on every architecture here.
const tick = 1e7

// cpuStates are the columns of /proc/stat. Guest time is already in user and
// nice, and left out.
var cpuStates = []string{"cpu_user", "cpu_nice", "cpu_system", "cpu_idle", "cpu_iowait", "cpu_irq", "cpu_softirq", "cpu_steal"}

type cpuTimes struct {
	cpu   string
	ticks [8]float64
}

func (s cpuSource) read(r *round) error {
	text, err := r.read(s.path)
	if err != nil {
		return err
	}
	times := parseStat(text)
	if len(times) == 0 {
		return errors.New(s.path + " names no processor")
	}
	for _, t := range times {
		for i, name := range cpuStates {
			r.total(device(t.cpu), name, Nanoseconds, t.ticks[i]*tick)
		}
	}
	return nil
}

// parseStat reads the lines of single processors: "cpu3 1 2 3 4 5 6 7 8 …".
func parseStat(text string) (times []cpuTimes) {
	for line := range strings.Lines(text) {
		if !strings.HasPrefix(line, "cpu") {
			break // they come first; what follows is long
		}
		fields := strings.Fields(line)
		if index(fields[0], "cpu") < 0 || len(fields) <= len(cpuStates) {
			continue
		}
		t := cpuTimes{cpu: fields[0]}
		whole := true
		for i := range t.ticks {
			v, ok := parseNumber(fields[i+1])
			t.ticks[i], whole = v, whole && ok
		}
		if whole {
			times = append(times, t)
		}
	}
	return times
}
