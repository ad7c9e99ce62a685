package tracer

import (
	"strings"

	"github.com/ebpfprof/ebpfprof/bpf"
	"github.com/ebpfprof/ebpfprof/tracer/process"
)

// thread writes the row of a thread that has its first event, or has ended; t is
// its process, nil where that has ended before.
func (s *Session) thread(t *tracedProcess, r *bpf.CallLifeRecord, ended *int64) {
	row := threadRow(int32(r.Tgid), int32(r.Tid), unsignedString(r.Comm[:]), process.StartedNS(r.StartTicks))
	row.EndedNS = ended
	if t != nil {
		if ended == nil {
			t.threads[row.TID] = row
		} else {
			delete(t.threads, row.TID)
		}
	}
	s.do(func(d *decoder) {
		d.keep(d.sink.Thread(row))
		if ended != nil {
			d.threadEnded(row.PID, row.TID)
		}
	})
}

// threadRow is the row of a thread. Its start belongs to what it is known by: a
// tid is used again.
func threadRow(pid, tid int32, name string, startedNS int64) Thread {
	t := Thread{PID: pid, TID: tid, Name: name}
	if startedNS > 0 {
		t.StartedNS = &startedNS
	}
	if role := process.Role(name, pid == tid); role != "" {
		t.Role = &role
	}
	return t
}

// endThreads gives the threads of a process that has ended its end, where nothing
// told theirs.
func (s *Session) endThreads(t *tracedProcess) {
	for tid, row := range t.threads {
		row.EndedNS = t.row.EndedNS
		s.do(func(d *decoder) { d.keep(d.sink.Thread(row)) })
		delete(t.threads, tid)
	}
}

func unsignedString(comm []int8) string {
	var b strings.Builder
	for _, c := range comm {
		if c == 0 {
			break
		}
		b.WriteByte(byte(c))
	}
	return b.String()
}
