package importer

import (
	"fmt"
	"strings"
	"testing"
)

// rankEvents are 50 launches of a rank, each with an operator around it and its work on a device, whose
// numbers every rank uses. The device is as far behind as the rank's own queue.
func rankEvents(pid, device int, at, behind float64) (events []string) {
	for i := range 50 {
		t := at + float64(i)*20
		events = append(events,
			fmt.Sprintf(`{"ph": "X", "cat": "cpu_op", "name": "aten::op_of_%d", "pid": %d, "tid": %d, "ts": %f, "dur": 12, "args": {"External id": %d}}`, pid, pid, pid, t, i+1),
			fmt.Sprintf(`{"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": %d, "tid": %d, "ts": %f, "dur": 5, "args": {"correlation": %d}}`, pid, pid, t+2, i+1),
			fmt.Sprintf(`{"ph": "X", "cat": "kernel", "name": "kernel_of_%d", "pid": %d, "tid": 7, "ts": %f, "dur": 4, "args": {"correlation": %d, "External id": %d, "stream": 7, "device": %d}}`, pid, device, t+8+behind, i+1, i+1, device))
	}
	return events
}

// TestRanksOfOneFileHaveTheirOwnLaunches: both number them from one, and one is 30 µs behind the
// other; work on the first's device begins before the second has launched what has its number.
func TestRanksOfOneFileHaveTheirOwnLaunches(t *testing.T) {
	for name, events := range map[string][]string{
		"one after the other":        append(rankEvents(100, 0, 1000, 0), rankEvents(200, 1, 1030, 60)...),
		"devices in another order":   append(rankEvents(100, 1, 1000, 0), rankEvents(200, 0, 1030, 60)...),
		"the later rank comes first": append(rankEvents(200, 1, 1030, 60), rankEvents(100, 0, 1000, 0)...),
	} {
		t.Run(name, func(t *testing.T) {
			db, _ := importFiles(t, file(t, "merged.json", `{"traceEvents": [`+strings.Join(events, ",\n")+`]}`))
			answers(t, db, map[string]string{
				"SELECT count(*) FROM span WHERE layer = 'device' AND launch_id " +
					"IS NOT NULL": "100",
				`SELECT count(*) FROM span d JOIN span l ON d.launch_id = l.span_id WHERE d.layer = 'device' AND d.name = 'kernel_of_' || l.pid
					AND d.pid = l.pid`: "100",
			})
		})
	}
}
