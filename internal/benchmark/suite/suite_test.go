package suite

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ebpfprof/ebpfprof/internal/benchmark/pipeline"
)

const example = `
systems:
  - name: workstation
    hosts: ['ws\d+']
    partitions:
      - {name: cpu, environment: {OMP_NUM_THREADS: "2"}, time_limit: 5m}
      - {name: gpu, features: [gpu], environs: [new]}
environs:
  - {name: old, values: {python: /usr/bin/python3}}
  - {name: new, values: {python: /opt/venv/bin/python}, environment: {A: new}}
benchmarks:
  - name: base
    abstract: true
    command: "{python} train.py --lr {lr} 'two words'"
    parameters: {lr: ["0.1", "0.01"]}
    environment: {A: base, B: base}
    sanity: {find: [loss]}
    batch: "16"
    references:
      '*': {step_time: [10, -0.1, 0.1, ms], loss: [2, null, 0.5]}
      workstation:gpu: {step_time: [$xfail, driver, [1, null, 0.1, ms]]}
  - name: small
    extends: base
    environment: {B: small}
    parameters: {batch: ["4"]}
    batch: "{batch}"
    time_limit: 90s
  - name: device
    extends: base
    valid_systems: ['+gpu']
    valid_environs: [new]
    command: [./run.sh, "{lr}"]
`

func written(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "suite.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func casesOf(t *testing.T, text string, choice Choice) []*pipeline.Case {
	t.Helper()
	s, err := Read(written(t, text))
	if err != nil {
		t.Fatal(err)
	}
	cases, err := s.Cases(choice)
	if err != nil {
		t.Fatal(err)
	}
	return cases
}

func names(cases []*pipeline.Case) (all []string) {
	for _, c := range cases {
		all = append(all, c.Name+" "+c.SysEnv())
	}
	return all
}

func TestASuiteHasACaseForEachFit(t *testing.T) {
	cases := casesOf(t, example, Choice{Host: "ws12"})
	want := []string{
		"small %batch=4 %lr=0.1 workstation:cpu+old", "small %batch=4 %lr=0.01 workstation:cpu+old",
		"small %batch=4 %lr=0.1 workstation:cpu+new", "small %batch=4 %lr=0.01 workstation:cpu+new",
		"small %batch=4 %lr=0.1 workstation:gpu+new", "small %batch=4 %lr=0.01 workstation:gpu+new",
		"device %lr=0.1 workstation:gpu+new", "device %lr=0.01 workstation:gpu+new",
	}
	if got := names(cases); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	c := cases[2]
	if want := []string{"/opt/venv/bin/python", "train.py", "--lr", "0.1", "two words"}; !slices.Equal(c.Command, want) {
		t.Errorf("command %q", c.Command)
	}
	if c.Env["A"] != "base" || c.Env["B"] != "small" || c.Env["OMP_NUM_THREADS"] != "2" || c.Numbers.Batch != 4 ||
		c.TimeLimit != 90*time.Second {
		t.Errorf("%v, batch %d, limit %v", c.Env, c.Numbers.Batch, c.TimeLimit)
	}
	if r := c.References["step_time"]; r.Value != 10 || *r.Upper != 0.1 || r.Expected != "" || c.References["loss"].Lower != nil {
		t.Errorf("%+v", c.References)
	}
	if r := cases[6].References["step_time"]; r.Value != 1 || r.Lower != nil || r.Expected != "driver" || len(cases[6].References) != 2 {
		t.Errorf("%+v", cases[6].References)
	}
	if got := names(casesOf(t, example, Choice{Host: "ws1", System: "workstation:gpu",
		Only: regexp.MustCompile("device.*0.01")})); !slices.Equal(got, want[7:]) {
		t.Errorf("%q", got)
	}
	if got := casesOf(t, example, Choice{Host: "ws"}); got[0].System != "generic" || got[0].Partition != "default" {
		t.Errorf("%q", names(got))
	}
}

func TestADryRunHasTheStagesAndDescribeTheCases(t *testing.T) {
	cases := casesOf(t, example, Choice{System: "workstation:gpu"})
	var dry, described bytes.Buffer
	DryRun(&dry, cases, []string{"ebpfprof", "run", "--"})
	for _, want := range []string{"run          ebpfprof run -- ./run.sh 0.1", "sanity       the job prints (?m)loss",
		"step_time between -Inf and 1.1", "environment  A=base"} {
		if !strings.Contains(dry.String(), want) {
			t.Errorf("%q is not in %s", want, dry.String())
		}
	}
	if err := Describe(&described, cases); err != nil {
		t.Fatal(err)
	}
	var all []struct {
		Name       string            `json:"name"`
		SysEnv     string            `json:"sysenv"`
		Stages     []string          `json:"stages"`
		References map[string][]any  `json:"references"`
		Parameters map[string]string `json:"parameters"`
	}
	if err := json.Unmarshal(described.Bytes(), &all); err != nil {
		t.Fatal(err)
	}
	if len(all) != 4 || all[3].Name != "device %lr=0.01" || len(all[3].Stages) != 6 || all[3].References["step_time"][4] != "driver" ||
		all[3].Parameters["lr"] != "0.01" {
		t.Errorf("%+v", all)
	}
}

func TestABrokenSuiteSaysWhatToMend(t *testing.T) {
	one := func(more string) string { return "benchmarks:\n  - name: a\n    command: x\n" + more }
	for text, want := range map[string]string{
		"":                                   "it has no benchmarks",
		"benchmark: []":                      "line 1: field benchmark not found",
		"benchmarks: [":                      "line 1",
		one("    comand: y\n"):               "line 4: field comand not found",
		one("  - name: a\n    command: y\n"): "two benchmarks are called a",
		"benchmarks: [{command: x}]":         "give each a name",
		one("    time_limit: 10\n"):          `"10" is not a time`,
		one("    references: {'*': {step_time: 5}}\n"):                                                     "a reference is [VALUE, LOWER",
		one("    references: {'*': {step_time: [$xfail, 5]}}\n"):                                           "a reference is [VALUE, LOWER",
		one("    references: {'*': {steptime: [5, null, null]}}\n"):                                        "there is no number steptime",
		one("    variables: {step_time: {regex: x}}\n"):                                                    "choose another one",
		one("    variables: {v: {}}\n"):                                                                    "give one of regex and sql",
		one("    variables: {v: {regex: '('}}\n"):                                                          "missing closing )",
		one("    variables: {v: {sql: SELECT 1, take: mode}}\n"):                                           "take is one of",
		one("    sanity: {find: ['[']}\n"):                                                                 "missing closing ]",
		one("    extends: b\n"):                                                                            "extends b, which is not there",
		one("    extends: a\n"):                                                                            "extends itself",
		one("    batch: many\n"):                                                                           "give a positive number",
		one("    valid_systems: [cray]\n"):                                                                 "no benchmark of the suite fits",
		"benchmarks: [{name: a, command: 'x {lr}'}]":                                                       "{lr} is neither a parameter",
		"benchmarks: [{name: a, command: \"x 'y\"}]":                                                       "a quote is not closed",
		"systems: [{name: s}]\nbenchmarks: [{name: a, command: x}]":                                        "has no partitions",
		"systems: [{name: s, hosts: ['('], partitions: [{name: p}]}]\nbenchmarks: [{name: a, command: x}]": "hosts of system s",
	} {
		s, err := Read(written(t, text))
		if err == nil {
			_, err = s.Cases(Choice{Host: "h"})
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
	if _, err := Read(filepath.Join(t.TempDir(), "none.yaml")); err == nil || !strings.Contains(err.Error(), "no such file") {
		t.Errorf("a file that is not there: %v", err)
	}
}
