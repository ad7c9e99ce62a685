package analysis

import (
	"strings"
	"testing"

	urfave "github.com/urfave/cli/v2"

	"github.com/ebpfprof/ebpfprof/internal/testkit/scripted"
	"github.com/ebpfprof/ebpfprof/internal/testkit/testcommand"
)

// TestEveryAnswerIsOfThePartThatTheFlagsChoose: of two ranks of 12 steps of 8 ms, in each one aten::mm.
func TestEveryAnswerIsOfThePartThatTheFlagsChoose(t *testing.T) {
	const ms = 1_000_000
	var jobs []*scripted.Job
	for rank := range 2 {
		j := scripted.New()
		j.PID, j.TID = int32(100+rank), int32(100+rank)
		for range 12 {
			j.Load(ms)
			j.Op("aten::mm", 3*ms)
			j.Backward(3 * ms)
			j.Optimize(ms)
		}
		jobs = append(jobs, j)
	}
	dir := scripted.Write(t, jobs...)
	for _, c := range []struct {
		command *urfave.Command
		flags   string
		want    string // what the answer has in it
		fails   bool
	}{
		{TreeCommand(), "--metric host_ns", "24  op aten::mm", false},
		{TreeCommand(), "--metric host_ns --rank 1", "12  op aten::mm", false},
		{TreeCommand(), "--metric host_ns --rank 1 --step 3", "1  op aten::mm", false},
		{TreeCommand(), "--metric host_ns --rank 1 --from 8 --to 24", "2  op aten::mm", false},
		{TreeCommand(), "--rank 7", "there is no rank 7: the dataset has 0, 1", true},
		{TreeCommand(), "--step 1 --from 3", "omit --from and --to", true},
		{TreeCommand(), "--from 8 --to 8", "--from is not before --to", true},
		{TreeCommand(), "--from -1", "count from the recording's first row", true},
		{TreeCommand(), "--step 99", "there is no step 99", true},
		{TreeCommand(), "--from 9999", "nothing was recorded in the part that --rank, --step, --from and --to select", true},
		{TreeCommand(), "--rank 1 --save", "--save writes the tree of the whole recording", true},
		{StepsCommand(), "--rank 0", "12 training steps", false},
		{StepsCommand(), "--rank 0 --from 16", "10 training steps", false},
		{StepsCommand(), "--from 16 --save", "--save writes the steps of the whole recording", true},
		{ViewsCommand(), "--view steps --rank 1 --from 16 --json", `"recorded":`, false},
		{FindingsCommand(), "--rank 1 --json", "[", false},
		{FindingsCommand(), "--rank 7", "there is no rank 7", true},
		{CriticalPathCommand(), "--rank 1 --from 16", "Train step", false},
		{ReportCommand(), "--rank 1 --step 3", "1 step of 8.000 ms", false},
		{ReportCommand(), "--rank 7", "there is no rank 7", true},
	} {
		out, warnings, code, err := testcommand.Run(c.command, append([]string{dir}, strings.Fields(c.flags)...)...)
		if err != nil {
			warnings += err.Error()
		}
		if failed := err != nil || code != 0; failed != c.fails || !strings.Contains(out+warnings, c.want) {
			t.Errorf("%s %s: failed %t, %q is missing:\n%s\n%s", c.command.Name, c.flags, failed, c.want, out, warnings)
		}
	}
}
