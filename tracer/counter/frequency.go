package counter

import (
	"fmt"
	"path/filepath"
	"time"
)

// frequencySource is cpufreq in sysfs: how fast processors run, and how fast they may.
// https://docs.kernel.org/admin-guide/pm/cpufreq.html
type frequencySource struct {
	policies []policy
	next     int // where the next round begins
}

// mostFrequency is how long a round may take: older kernels interrupt a processor to ask it for
// its clock, and machines have hundreds. The rest has its turn in the next round.
const mostFrequency = 2 * time.Millisecond

// policy is what processors have one clock by; policy4 begins with cpu4.
type policy struct {
	at  place
	dir string
}

// The second is what the kernel, its thermal drivers and the administrator leave of the third.
var frequencyMetrics = []metric{
	{"scaling_cur_freq", "cpu_clock", Hertz, 1e3, false},
	{"scaling_max_freq", "cpu_clock_limit", Hertz, 1e3, false},
	{"cpuinfo_max_freq", "cpu_clock_max", Hertz, 1e3, false},
}

func openFrequency(f Files) (source, error) {
	dir := f.path("sys/devices/system/cpu/cpufreq")
	s := &frequencySource{}
	for _, name := range list(dir, "policy") {
		s.policies = append(s.policies, policy{device(fmt.Sprintf("cpu%d", index(name, "policy"))), filepath.Join(dir, name)})
	}
	if len(s.policies) == 0 {
		return nil, fmt.Errorf("no policy in %s: the machine's firmware or host keeps the clocks to itself", dir)
	}
	return s, nil
}

func (s *frequencySource) read(r *round) (failed error) {
	began := r.clock()
	for range s.policies {
		p := s.policies[s.next]
		s.next = (s.next + 1) % len(s.policies)
		firstOf(&failed, r.addFiles(p.at, p.dir, frequencyMetrics))
		if time.Duration(r.clock()-began) > mostFrequency {
			break
		}
	}
	return failed
}
