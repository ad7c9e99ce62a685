package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ebpfprof/ebpfprof/internal/cli"
	"github.com/ebpfprof/ebpfprof/internal/testkit/scripted"
	"github.com/ebpfprof/ebpfprof/internal/testkit/testcommand"
)

// A user looks at a dataset in each way, writes a note and a query beside it, and
// finds them again; what was recorded stays as it was.
func TestWhatAUserKeepsBesideADataset(t *testing.T) {
	dir := scripted.Copying(t)
	for _, c := range []struct {
		line []string
		want string // in the output
	}{
		{[]string{"views", dir, "--view", "steps"}, "train"},
		{[]string{"views", dir}, "idle cannot be told"},
		{[]string{"search", dir, "CONTIG"}, "aten::contiguous"},
		{[]string{"search", dir, "nowhere to be found"}, "occurs nowhere"},
		{[]string{"annotate", dir}, "No notes"},
		{[]string{"annotate", dir, "slow from here", "--at", "3", "--step", "4", "--place", "model.py:17"}, "note 1"},
		{[]string{"annotate", dir}, "slow from here"},
		{[]string{"query", dir, "SELECT count(*) AS n FROM span", "--save", "spans"}, "n"},
		{[]string{"query", dir, "--saved", "spans"}, "n"},
		{[]string{"query", dir, "--list-examples"}, "SELECT count(*)"},
		{[]string{"steps", dir, "--save"}, "40 training steps"},
		{[]string{"findings", dir, "--save"}, "2.00 ms shorter"},
		{[]string{"tree", dir, "--save"}, "model.py:17"},
		{[]string{"query", dir, "SELECT count(*) AS n, sum(whole::INT) AS w FROM step", "--format", "csv"}, "40,40"},
		{[]string{"query", dir, "SELECT rule, file, line FROM finding WHERE rule = 'layout'", "--format", "csv"}, "layout,/home/me/model.py,17"},
		{[]string{"query", dir, "SELECT max(sum)::BIGINT AS most FROM context_node WHERE name = 'aten::mm' AND metric = 'host_ns'", "--format",
			"csv"}, "160000000"},
		{[]string{"query", dir, "SELECT text, step, place FROM annotation", "--format", "csv"}, "slow from here,4,model.py:17"},
		{[]string{"annotate", dir, "--remove", "1"}, ""},
		{[]string{"annotate", dir}, "No notes"},
		{[]string{"report", dir, "--step", "7"}, "11.0"},
		{[]string{"critical-path", dir, "--annotation", "Optimizer.step", "--instance", "3"}, "Optimizer.step"},
		{[]string{"diff", dir, dir, "--repeat-before", dir, "--repeat-before", dir, "--repeat-after", dir, "--repeat-after", dir}, "Neutral"},
	} {
		out, complaint, code := said(t, c.line...)
		if code != cli.ExitOK || !strings.Contains(out, c.want) {
			t.Errorf("%q: exit %d, %s\n%s", c.line[0], code, complaint, out)
		}
	}
}

func TestMistakesAboutAnswersAreOneSentenceAndACode(t *testing.T) {
	dir := scripted.Copying(t)
	for _, c := range []struct {
		line []string
		code int
	}{
		{[]string{"views", dir, "--view", "nothing"}, cli.ExitUsage},
		{[]string{"views", dir, "--view", "idle"}, cli.ExitFailed},
		{[]string{"views", dir, "--compare", "a,b,c,d"}, cli.ExitUsage},
		{[]string{"search", dir}, cli.ExitUsage},
		{[]string{"annotate", dir, "--remove", "7"}, cli.ExitFailed},
		{[]string{"annotate", dir, "x", "--to", "3"}, cli.ExitUsage},
		{[]string{"query", dir, "--saved", "nothing"}, cli.ExitFailed},
		{[]string{"query", dir, "SELECT 1", "--save", "../x"}, cli.ExitFailed},
		{[]string{"report", dir, "--step", "99"}, cli.ExitFailed},
		{[]string{"report", dir, "--step", "1", "--from", "3"}, cli.ExitUsage},
		{[]string{"critical-path", dir, "--annotation", "nothing"}, cli.ExitFailed},
		{[]string{"peaks", "x"}, cli.ExitUsage},
	} {
		_, complaint, code := said(t, c.line...)
		if code != c.code || strings.Count(strings.TrimSpace(complaint), "\n") != 0 || complaint == "" {
			t.Errorf("%q: exit %d, want %d: %s", c.line, code, c.code, complaint)
		}
	}
}

// Views of JSON are objects whose members docs/json.md names.
func TestViewsAreJSON(t *testing.T) {
	out, complaint, _ := said(t, "views", scripted.Copying(t), "--view", "steps", "--json")
	var views []struct {
		View string           `json:"view"`
		Rows []map[string]any `json:"rows"`
	}
	if err := json.Unmarshal([]byte(out), &views); err != nil || len(views) != 1 || views[0].Rows[0]["count"] != 40.0 {
		t.Errorf("%v %s %+v", err, complaint, views)
	}
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "json.md"))
	if err != nil {
		t.Fatal(err)
	}
	for name := range views[0].Rows[0] {
		if !strings.Contains(string(text), "`"+name+"`") {
			t.Errorf("docs/json.md does not name %s", name)
		}
	}
}

// said runs a command of the tool.
func said(t *testing.T, line ...string) (out, complaint string, code int) {
	t.Helper()
	for _, c := range answers() {
		if c.Name == line[0] {
			out, _, code, err := testcommand.Run(c, line[1:]...)
			if err != nil {
				complaint = err.Error()
			}
			return out, complaint, code
		}
	}
	t.Fatalf("there is no command %s", line[0])
	return "", "", 0
}
