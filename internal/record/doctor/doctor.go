package doctor

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"

	"github.com/jedib0t/go-pretty/v6/table"
	urfave "github.com/urfave/cli/v2"

	"github.com/ebpfprof/ebpfprof/internal/cli"
	"github.com/ebpfprof/ebpfprof/internal/record/recorder"
	"github.com/ebpfprof/ebpfprof/internal/text/amount"
	"github.com/ebpfprof/ebpfprof/internal/text/printable"
	"github.com/ebpfprof/ebpfprof/internal/text/terminal"
	"github.com/ebpfprof/ebpfprof/tracer"
	"github.com/ebpfprof/ebpfprof/tracer/features"
	"github.com/ebpfprof/ebpfprof/tracer/process"
)

// check is one line of the doctor's report.
type check struct {
	Name  string `json:"name"`
	State string `json:"state"`
	Why   string `json:"why"`
}

// States of a check.
const (
	stateOK       = "ok"
	stateInfo     = "-"        // neither good nor bad
	stateDegraded = "degraded" // it works, with a loss
	stateMissing  = "missing"  // nothing works without it
)

// Command is `ebpfprof doctor`.
func Command() *urfave.Command {
	return &urfave.Command{
		Name:      "doctor",
		Usage:     "say what works here, what does not, and why",
		UsageText: "ebpfprof doctor [--pid PID]",
		Flags: []urfave.Flag{
			&urfave.IntFlag{Name: "pid", Aliases: []string{"p"}, DefaultText: "none", Usage: "look at the process `PID` as well"},
			&urfave.BoolFlag{Name: "json", DisableDefaultText: true, Usage: "print JSON"},
		},
		Action: func(c *urfave.Context) error {
			if err := cli.NoArguments(c); err != nil {
				return err
			}
			checks, verdict := examine()
			checks = append(checks, limitChecks()...)
			if pid := c.Int("pid"); c.IsSet("pid") {
				more, err := examineJob(pid)
				checks = append(checks, more...)
				if verdict == nil {
					verdict = err
				}
			}
			if err := printChecks(checks, c.Bool("json")); err != nil {
				return err
			}
			return verdict
		},
		Description: "The exit code is what attach would end with: 0 when it would work, 3 or 4 when not.",
	}
}

func printChecks(checks []check, asJSON bool) error {
	if asJSON {
		e := json.NewEncoder(printable.JSON(os.Stdout))
		e.SetIndent("", "  ")
		return e.Encode(checks)
	}
	t := terminal.PlainTable("check", "state", "why")
	for _, k := range checks {
		t.AppendRow(table.Row{k.Name, k.State, k.Why})
	}
	terminal.Render(os.Stdout, t)
	return nil
}

// required makes a check of something that attach cannot do without.
func required(name string, err error, fine string) check {
	if err != nil {
		return check{name, stateMissing, err.Error()}
	}
	return check{name, stateOK, fine}
}

// wanted is a check of what the rest goes on without.
func wanted(name string, err error, fine, without string) check {
	if err != nil {
		return check{name, stateDegraded, fmt.Sprintf("%s (%v)", without, err)}
	}
	return check{name, stateOK, fine}
}

// examine looks at the machine and returns what attach would say.
func examine() (checks []check, verdict error) {
	checks = append(hostChecks(), counterChecks()...)
	fail := func(name string, err error, fine string) {
		checks = append(checks, required(name, err, fine))
		if verdict == nil {
			verdict = err
		}
	}
	fail("kill switch", features.CheckKillSwitch(), "off: neither "+features.DisableFile+" nor "+features.DisableVariable)
	fail("own namespaces", features.CheckNamespaces(), "the pids here are those that probes see")
	permitted := features.CheckPermitted()
	fail("capabilities", permitted, "CAP_BPF, CAP_PERFMON and CAP_SYS_PTRACE are there")
	if permitted != nil {
		checks = append(checks, check{"kernel features", stateInfo, "unknown: they are found by trying, which takes the capabilities above"})
		return checks, verdict
	}
	can := features.Probe()
	checks = append(checks, featureChecks(can)...)
	checks = append(checks, hazardChecks(can)...)
	if err := errors.Join(can.Check(), features.CheckHazards(can, nil)); err != nil {
		if verdict == nil {
			verdict = cli.FirstCause(err)
		}
		return checks, verdict
	}
	calls, samples := tracer.CheckLoads(can, recorder.DefaultOptions())
	fail("programs load", calls, fmt.Sprintf("with the default ring buffer of %s", amount.Bytes(defaultBuffer)))
	if calls == nil {
		checks = append(checks, wanted("sampling programs load", samples, "stacks are taken", "no samples and no waits"))
	}
	return checks, verdict
}

func featureChecks(f *features.Set) []check {
	var checks []check
	for _, feature := range f.List {
		k := check{feature.Name, stateOK, "in Linux since " + feature.Since}
		if feature.Err != nil {
			k.State, k.Why = stateDegraded, fmt.Sprintf("%s; Linux %s has it (%v)", feature.Without, feature.Since, feature.Err)
			if feature.Required {
				k.State = stateMissing
			}
		}
		checks = append(checks, k)
	}
	return append(checks, check{"kprobes, fentry, LSM", stateInfo, "not needed, and not used"})
}

// hazardChecks say what is known to be bad about this kernel.
func hazardChecks(f *features.Set) []check {
	found := features.HazardsHere(f)
	if len(found) == 0 {
		return []check{{"known-bad kernels", stateOK, fmt.Sprintf("none of the %d known hazards is in this one", len(features.Hazards))}}
	}
	var checks []check
	for _, h := range found {
		k := check{"hazard: " + h.Name, stateMissing, h.Harm + " (" + h.Source + ")"}
		if h.Some() {
			k.State, k.Why = stateDegraded, "jobs with a seccomp filter are recorded without return probes: "+k.Why
		}
		checks = append(checks, k)
	}
	return checks
}

// examineJob looks at a process and returns what attach would say about it.
func examineJob(pid int) ([]check, error) {
	p, err := process.Open(pid)
	if err != nil {
		return []check{{fmt.Sprintf("pid %d", pid), stateMissing, err.Error()}}, err
	}
	return jobChecks(p)
}
