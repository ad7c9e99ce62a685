package job

import (
	"strings"

	"github.com/ebpfprof/ebpfprof/bpf"
	"github.com/ebpfprof/ebpfprof/tracer/decode"
	"github.com/ebpfprof/ebpfprof/tracer/process"
)

// thread writes the row of a thread that has its first event, or has ended; t is
// its process, nil where that has ended before.
func (l *lives) thread(t *traced, r *bpf.CallLifeRecord, ended *int64) {
	row := decode.ThreadRow(int32(r.Tgid), int32(r.Tid), unsignedString(r.Comm[:]), process.StartedNS(r.StartTicks))
	row.EndedNS = ended
	if t != nil {
		if ended == nil {
			t.threads[row.TID] = row
		} else {
			delete(t.threads, row.TID)
		}
	}
	l.job.config.Decoder.Thread(row)
	if ended != nil {
		l.job.config.Decoder.ThreadEnded(row.PID, row.TID)
	}
}

// endThreads gives the threads of a process that has ended its end, where nothing
// told theirs.
func (l *lives) endThreads(t *traced) {
	for tid, row := range t.threads {
		row.EndedNS = t.row.EndedNS
		l.job.config.Decoder.Thread(row)
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
