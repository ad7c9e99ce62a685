package tracer

import (
	"fmt"
	"strings"

	"github.com/ebpfprof/ebpfprof/bpf"
	"github.com/ebpfprof/ebpfprof/tracer/event"
	"github.com/ebpfprof/ebpfprof/tracer/kernel"
)

// sharesOf are the tables whose want of room a reason of a loss is.
var sharesOf = map[string][]bpf.CallShare{
	"thread_quota": {bpf.CallShareSHARE_THREADS}, "thread_table_full": {bpf.CallShareSHARE_THREADS},
	"wait_quota": {bpf.CallShareSHARE_WAITS}, "wait_table_full": {bpf.CallShareSHARE_WAITS},
	"io_quota": {bpf.CallShareSHARE_IO}, "io_table_full": {bpf.CallShareSHARE_IO},
	"scope_quota": {bpf.CallShareSHARE_SCOPES}, "scope_lost": {bpf.CallShareSHARE_SCOPES},
	"process_quota":      {bpf.CallShareSHARE_PROCESSES, bpf.CallShareSHARE_YOUNG},
	"process_table_full": {bpf.CallShareSHARE_PROCESSES, bpf.CallShareSHARE_YOUNG},
}

// refusals are what is known of the processes that had no more room in a table: they may have
// ended when the losses are written.
type refusals struct{ named map[int]string }

// look names the processes that were refused last, as long as they are followed. It is the
// manager's.
func (r *refusals) look(s *Session) {
	if r.named == nil {
		r.named = map[int]string{}
	}
	for share := range bpf.CallShareSHARES {
		for _, of := range s.kernel.Shares.Of(share) {
			if row, ok := s.job.Row(of.Last); ok && of.Refused > 0 && len(r.named) < MaxProcesses {
				r.named[of.Last] = calledAs(&row)
			}
		}
	}
}

// calledAs is what a process is called in a sentence: its job too, if it is known.
func calledAs(row *event.Process) string {
	command, _, _ := strings.Cut(row.Command, "\x00")
	if row.JobID != nil {
		return fmt.Sprintf(" (%q of job %q)", command, *row.JobID)
	}
	return fmt.Sprintf(" (%q)", command)
}

// whose says who was refused the most of what a reason is of, and who has the most of that
// table; "" where that is not counted.
func (r *refusals) whose(s *Session, reason string) (text string) {
	for _, share := range sharesOf[reason] {
		var refused, most *kernel.UserShare
		for _, of := range s.kernel.Shares.Of(share) {
			if of.Refused > 0 && (refused == nil || of.Refused > refused.Refused) {
				refused = &of
			}
			if most == nil || of.Taken > most.Taken {
				most = &of
			}
		}
		if refused == nil {
			continue
		}
		text += mostlyOf(refused.User, int(refused.Refused)) + fmt.Sprintf(", the last of pid %d%s", refused.Last, r.named[refused.Last])
		if most.User != refused.User {
			text += fmt.Sprintf("; user %d has the most places (%d)", most.User, most.Taken)
		}
	}
	return text
}

// mostlyOf says of which user the most was refused.
func mostlyOf(user uint32, refused int) string {
	if refused == 0 {
		return ""
	}
	return fmt.Sprintf("; user %d was refused the most (%d)", user, refused)
}
