package analysis

import (
	"encoding/json"
	"strings"
	"testing"

	urfave "github.com/urfave/cli/v2"

	"github.com/ebpfprof/ebpfprof/internal/testkit/scripted"
	"github.com/ebpfprof/ebpfprof/internal/testkit/testcommand"
)

func TestStepsCriticalPathAndFindingsOfADataset(t *testing.T) {
	dir := scripted.Copying(t)
	var steps struct {
		Processes []struct {
			Sequence string `json:"sequence"`
			Steps    struct {
				Count  int     `json:"count"`
				MeanMS float64 `json:"mean_ms"`
			} `json:"steps"`
		} `json:"processes"`
	}
	var path struct {
		PathMS float64 `json:"path_ms"`
		Parts  []struct {
			Name string `json:"name"`
		} `json:"parts"`
	}
	var findings []struct {
		Rule       string   `json:"rule"`
		HeadroomMS *float64 `json:"headroom_ms"`
		File       string   `json:"file"`
		Line       int      `json:"line"`
	}
	for _, c := range []struct {
		command *urfave.Command
		into    any
		text    string // of the form for people
	}{
		{StepsCommand(), &steps, "40 training steps of 11.00 ms"},
		{CriticalPathCommand(), &path, "in calls on the host"},
		{FindingsCommand(), &findings, "could be 2.00 ms shorter"},
	} {
		out, warnings, code, err := testcommand.Run(c.command, dir, "--json")
		if err != nil || code != 0 || warnings != "" {
			t.Fatalf("%s: %v %s", c.command.Name, err, warnings)
		}
		if err := json.Unmarshal([]byte(out), c.into); err != nil {
			t.Errorf("%s: %v\n%s", c.command.Name, err, out)
		}
		if out, _, _, err := testcommand.Run(c.command, dir); err != nil || !strings.Contains(out, c.text) {
			t.Errorf("%s: %v, %q is not in\n%s", c.command.Name, err, c.text, out)
		}
	}
	if len(steps.Processes) != 1 || steps.Processes[0].Steps.Count != 40 || steps.Processes[0].Steps.MeanMS != 11 {
		t.Errorf("steps %+v", steps)
	}
	if path.PathMS != 11 || len(path.Parts) == 0 {
		t.Errorf("path %+v", path)
	}
	if len(findings) == 0 || findings[0].Rule != "layout" || findings[0].File != "/home/me/model.py" || findings[0].Line != 17 {
		t.Errorf("findings %+v", findings)
	}
	if out, _, _, err := testcommand.Run(FindingsCommand(), dir, "--evidence"); err != nil || !strings.Contains(out, "aten::contiguous │") {
		t.Errorf("evidence: %v\n%s", err, out)
	}
}

func TestMistakesAboutStepsAreOneSentenceAndACode(t *testing.T) {
	dir := scripted.Copying(t)
	for _, c := range []struct {
		command   *urfave.Command
		code      int
		arguments []string
	}{
		{StepsCommand(), 2, nil},
		{StepsCommand(), 2, []string{dir, dir}},
		{StepsCommand(), 1, []string{dir + "x"}},
		{StepsCommand(), 1, []string{t.TempDir()}},
		{CriticalPathCommand(), 2, []string{dir, "--step", "-3"}},
		{CriticalPathCommand(), 1, []string{dir, "--step", "99"}},
		{FindingsCommand(), 1, []string{dir, "--thresholds", dir + "x"}},
		{FindingsCommand(), 2, []string{dir, "--json", "--evidence"}},
	} {
		out, _, code, err := testcommand.Run(c.command, c.arguments...)
		if code != c.code || err == nil || strings.Contains(err.Error(), "\n") || out != "" {
			t.Errorf("%s %q: code %d, %v\n%s", c.command.Name, c.arguments, code, err, out)
		}
	}
}
