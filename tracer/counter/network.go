package counter

import (
	"os"
	"slices"
	"strconv"
	"strings"
)

// networkSource is /proc/PID/net/dev: the interfaces of the network namespaces
// that the job's processes are in.
type networkSource struct {
	files Files
	job   *job
	seen  map[string]bool // namespaces that a process of the job was in
}

func openNetwork(f Files, j *job) (source, error) {
	return present(&networkSource{f, j, map[string]bool{}}, f.path("proc/self/net/dev"))
}

// namespace is a network namespace and the processes in it: it is read through
// one that still lives.
type namespace struct {
	name string // "net:[4026531840]"
	pids []string
}

// namespaces are those of the living processes and, once it was the job's too,
// our own: the last reading comes after the job's end.
func (s *networkSource) namespaces() (found []*namespace) {
	pids := []string{"self"}
	for _, pid := range s.job.processes() {
		pids = append(pids, strconv.Itoa(pid))
	}
	for _, pid := range pids {
		name, err := os.Readlink(s.files.path("proc", pid, "ns/net"))
		if err != nil {
			continue
		}
		i := slices.IndexFunc(found, func(n *namespace) bool { return n.name == name })
		if i < 0 {
			i, found = len(found), append(found, &namespace{name: name})
		}
		found[i].pids = append(found[i].pids, pid)
	}
	for _, n := range found {
		s.seen[n.name] = s.seen[n.name] || len(n.pids) > 1 || n.pids[0] != "self"
	}
	return slices.DeleteFunc(found, func(n *namespace) bool { return !s.seen[n.name] })
}

func (s *networkSource) read(r *round) (failed error) {
	for _, n := range s.namespaces() {
		for _, pid := range n.pids {
			text, err := r.read(s.files.path("proc", pid, "net/dev"))
			if err != nil {
				firstOf(&failed, err)
				continue
			}
			for _, i := range parseNetDev(text) {
				r.addUsed(device(i.device).within(n.name), i, networkMetrics)
			}
			break
		}
	}
	return failed
}

var networkMetrics = []metric{
	{"0", "network_received", Bytes, 1, true},
	{"1", "network_received_packets", Count, 1, true},
	{"2", "network_receive_errors", Count, 1, true},
	{"3", "network_receive_drops", Count, 1, true},
	{"8", "network_sent", Bytes, 1, true},
	{"9", "network_sent_packets", Count, 1, true},
	{"10", "network_send_errors", Count, 1, true},
}

// parseNetDev reads "  eth0: 3762611312 74844 0 0 …". The name of an interface
// may hold a colon.
func parseNetDev(text string) (interfaces []totals) {
	for line := range strings.Lines(text) {
		colon := strings.LastIndexByte(line, ':')
		if colon < 0 || strings.Contains(line, "|") { // the two lines of the header
			continue
		}
		name := strings.TrimSpace(line[:colon])
		if t, ok := parseTotals(name, strings.Fields(line[colon+1:])); ok && name != "" {
			interfaces = append(interfaces, t)
		}
	}
	return interfaces
}
