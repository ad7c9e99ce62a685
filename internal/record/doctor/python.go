package doctor

import (
	"errors"
	"fmt"

	"github.com/ebpfprof/ebpfprof/symbolize/cpython"
	"github.com/ebpfprof/ebpfprof/tracer/process"
	"github.com/ebpfprof/ebpfprof/tracer/python"
)

// pythonChecks say which Python the process runs, and whether stacks will have
// its frames; if not, why.
func pythonChecks(p *process.Process, libraries []*process.Library) []check {
	const frames = "Python frames"
	interpreter, err := python.Open(p, libraries)
	if interpreter != nil {
		defer interpreter.Close()
	}
	var refused *cpython.UnsupportedError
	switch {
	case errors.Is(err, python.ErrNoPython):
		return []check{{"Python", stateInfo, "no CPython is mapped: stacks have native frames only"}}
	case errors.As(err, &refused) && refused.Version == "":
		return []check{{"Python", stateDegraded, refused.Error() + ": stacks have native frames only"}}
	}
	checks := []check{{"Python", stateInfo, "its version is not known"}}
	if found, _ := p.Python(libraries); found != nil {
		checks[0] = check{"Python", stateOK, found.Version}
	}
	switch {
	case errors.Is(err, cpython.ErrNotInitialised):
		return append(checks, check{frames, stateInfo, err.Error() + ": attach looks again"})
	case err != nil:
		return append(checks, check{frames, stateDegraded, err.Error()})
	case !interpreter.Verified:
		return append(checks, check{frames, stateOK, "the interpreter was found; none of its threads could be compared with it"})
	}
	why := fmt.Sprintf("found through the threads' own key %d, and compared with a thread", interpreter.Key)
	if table := cpython.Lookup(interpreter.Version); table != nil && len(table.Measured) == 0 {
		return append(checks, check{frames, stateOK, why + fmt.Sprintf("; the layout of %d.%d was read, never tried", interpreter.Version.Major,
			interpreter.Version.Minor)})
	}
	return append(checks, check{frames, stateOK, why})
}
