package doctor

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ebpfprof/ebpfprof/internal/text/amount"
	"github.com/ebpfprof/ebpfprof/tracer/process"
	"github.com/ebpfprof/ebpfprof/tracer/stacks"
	"github.com/ebpfprof/ebpfprof/tracer/unwinding"
)

// walkChecks tell the kernel of a process as attach would, in maps of their own,
// and say what it then knows: why a process would have no native frames.
func walkChecks(p *process.Process) []check {
	const name = "native walk"
	size := generatedBytes(p)
	maps, err := unwinding.NewMaps(true)
	if err != nil {
		return append([]check{{name, stateInfo, "not tried: " + err.Error()}}, generatedCheck(size, 0)...)
	}
	defer maps.Close()
	u := unwinding.New(maps, unwinding.Options{Cache: stacks.UnwindCache()})
	defer u.Close()
	if err := u.AddProcess(p); err != nil {
		return []check{{name, stateMissing, "no native frames: " + err.Error()}}
	}
	u.Wait()
	status, _ := u.Status(p.PID)
	k := walkCheck(status)
	k.Name = name
	return append([]check{k}, generatedCheck(size, status.Generated)...)
}

// walkCheck says how well a process can be walked.
func walkCheck(status unwinding.ProcessStatus) check {
	ready, bytes := 0, status.GeneratedBytes
	var reasons []string
	for _, f := range status.Files {
		if f.State == unwinding.Ready {
			ready++
			bytes += f.Bytes
		} else if f.Reason != nil && !slices.Contains(reasons, f.Reason.Error()) {
			reasons = append(reasons, f.Reason.Error())
		}
	}
	switch {
	case status.Compat:
		return check{State: stateMissing, Why: "32-bit code, which is not walked: no native frames"}
	case status.Mappings == 0:
		return check{State: stateMissing, Why: "nothing executable is mapped: no native frames"}
	case ready == 0:
		return check{State: stateDegraded, Why: "no file has an unwind table in the kernel, frames are followed by frame pointer: " +
			strings.Join(reasons, "; ")}
	case status.Dropped > 0:
		return check{State: stateDegraded, Why: fmt.Sprintf("%d executable mappings are more than the kernel's table holds, and stacks end there",
			status.Dropped)}
	}
	return check{State: stateOK, Why: fmt.Sprintf("the kernel knows %d executable mappings and the tables of %d files, %s", status.Mappings,
		ready, amount.Bytes(int64(bytes)))}
}

// generatedBytes is how much of a process's code is in no file.
func generatedBytes(p *process.Process) (size uint64) {
	mappings, err := p.Mappings()
	if err != nil {
		return 0
	}
	for _, m := range mappings {
		if m.Open == nil && !slices.Contains([]string{"[vdso]", "[vsyscall]"}, m.Path) && !strings.HasPrefix(m.Path, "[uprobes") {
			size += m.End - m.Start
		}
	}
	return size
}

// generatedCheck is about code that is in no file.
func generatedCheck(size uint64, rows int) []check {
	if size == 0 {
		return nil
	}
	how := "its frames are followed by frame pointer"
	if rows > 0 {
		how = fmt.Sprintf("%s rows of an unwind table are inferred from its instructions, the rest is followed by frame pointer",
			amount.Count(uint64(rows)))
	}
	return []check{{"generated code", stateInfo, amount.Bytes(int64(size)) + " of code is in no file (a just-in-time compiler): " + how +
		", shown as [anon]"}}
}
