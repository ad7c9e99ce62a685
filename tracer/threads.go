package tracer

import (
	"strings"

	"github.com/ebpfprof/ebpfprof/bpf"
	"github.com/ebpfprof/ebpfprof/tracer/decode"
	"github.com/ebpfprof/ebpfprof/tracer/process"
)

// thread writes the row of a thread that has its first event, or has ended; t is
// its process, nil where that has ended before.
func (s *Session) thread(t *tracedProcess, r *bpf.CallLifeRecord, ended *int64) {
	row := decode.ThreadRow(int32(r.Tgid), int32(r.Tid), unsignedString(r.Comm[:]), process.StartedNS(r.StartTicks))
	row.EndedNS = ended
	if t != nil {
		if ended == nil {
			t.threads[row.TID] = row
		} else {
			delete(t.threads, row.TID)
		}
	}
	s.do(func(d *decode.Decoder) {
		d.Rows.Out.Keep(d.Rows.Out.Thread(row))
		if ended != nil {
			d.ThreadEnded(row.PID, row.TID)
		}
	})
}

// endThreads gives the threads of a process that has ended its end, where nothing
// told theirs.
func (s *Session) endThreads(t *tracedProcess) {
	for tid, row := range t.threads {
		row.EndedNS = t.row.EndedNS
		s.decoder.Write(func(sink Sink) error { return sink.Thread(row) })
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
