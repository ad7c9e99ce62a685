package badinput

import "testing"

func TestMistakesInTheCommandLineAreUsageErrors(t *testing.T) {
	for _, c := range []struct {
		words string
		argv  []string
	}{
		{"unknown command \"frobnicate\"", []string{"frobnicate"}},
		{"did you mean ebpfprof attach", []string{"atach"}},
		{"unknown flag --bogus", []string{"--bogus"}},
		{"unknown flag --bogus", []string{"attach", "--bogus"}},
		{"unknown flag --bogus", []string{"query", "d", "SELECT 1", "--bogus"}},
		{"--pid PID", []string{"attach"}},
		{"--pid needs a value", []string{"attach", "--pid"}},
		{"give a number", []string{"attach", "--pid", "x"}},
		{"positive number", []string{"attach", "--pid", "0"}},
		{"positive number", []string{"attach", "--pid", "-5"}},
		{"--pid PID", []string{"attach", "4711"}},
		{"choose anchor, window or deep", []string{"attach", "--pid", "1", "--level", "bottomless"}},
		{"unknown probe group \"nope\"", []string{"attach", "--pid", "1", "--probe", "nope"}},
		{"such as 5%", []string{"attach", "--pid", "1", "--budget", "-1%"}},
		{"such as 5%", []string{"attach", "--pid", "1", "--budget", "0"}},
		{"such as 5%", []string{"attach", "--pid", "1", "--budget", "NaN"}},
		{"such as 5%", []string{"attach", "--pid", "1", "--budget", "101%"}},
		{"such as 64MiB", []string{"attach", "--pid", "1", "--buffer-size", "lots"}},
		{"such as 64MiB", []string{"attach", "--pid", "1", "--buffer-size", "-1"}},
		{"up to 1GiB", []string{"attach", "--pid", "1", "--buffer-size", "1TiB"}},
		{"up to 1GiB", []string{"attach", "--pid", "1", "--buffer-size", "2GiB"}},
		{"with its unit", []string{"attach", "--pid", "1", "--duration", "5"}},
		{"positive time", []string{"attach", "--pid", "1", "--duration", "-5s"}},
		{"positive time", []string{"attach", "--pid", "1", "--duration", "0s"}},
		{"takes no value", []string{"attach", "--pid", "1", "--json=perhaps"}},
		{"give the command", []string{"run"}},
		{"give the command", []string{"run", "--"}},
		{"choose anchor", []string{"run", "--level", "x", "--", "true"}},
		{"unknown flag --bogus", []string{"run", "--bogus", "--", "true"}},
		{"--pid PID or --library FILE", []string{"probes"}},
		{"unexpected argument", []string{"probes", "libtorch.so"}},
		{"unknown probe group", []string{"probes", "--library", "x", "--probe", "nope"}},
		{"unexpected argument", []string{"doctor", "7"}},
		{"bash|zsh|fish", []string{"completion"}},
		{"bash|zsh|fish", []string{"completion", "tcsh"}},
		{"no table \"nope\"", []string{"schema", "nope"}},
		{"unknown format", []string{"schema", "--format", "xml"}},
		{"which dataset", []string{"query"}},
		{"which query", []string{"query", "d"}},
		{"unknown format", []string{"query", "d", "SELECT 1", "--format", "xml"}},
		{"--pid PID", []string{"top"}},
		{"positive number", []string{"top", "--pid", "0"}},
		{"give a number", []string{"top", "--pid", "x"}},
		{"at least 100ms", []string{"top", "--pid", "1", "--interval", "1ms"}},
		{"positive time", []string{"top", "--pid", "1", "--duration", "0s"}},
		{"from 1 to", []string{"top", "--pid", "1", "--frequency", "0"}},
		{"positive number", []string{"top", "--pid", "1", "--top", "0"}},
		{"unexpected argument", []string{"top", "4711"}},
		{"which dataset", []string{"stacks"}},
		{"give a number", []string{"stacks", "d", "--pid", "x"}},
		{"positive number", []string{"stacks", "d", "--top", "-1"}},
		{"one of --folded, --json and --pprof", []string{"stacks", "d", "--folded", "--json"}},
		{"unknown flag --bogus", []string{"stacks", "d", "--bogus"}},
		{"which dataset", []string{"symbolize", "--debug-dir", "d"}},
		{"where are the files", []string{"symbolize", "d"}},
	} {
		dir := t.TempDir()
		r := runIn(t, dir, append([]string{ebpfprof}, c.argv...)...)
		t.Logf("%q: %s", c.argv, r.complaint())
		code := usage
		if c.argv[0] == "run" {
			code = notStarted
		}
		r.checkAlone(t, dir, code, c.words)
	}
}

func TestHelpAndVersionAreNotFailures(t *testing.T) {
	for _, argv := range [][]string{{"--help"}, {"--version"}, {"attach", "--help"}, {"run", "-h"}, {"query", "--help"}, {"stacks", "--help"},
		{"top", "--help"}, {"symbolize", "--help"}, {"schema"}, {"probes", "--groups"}, {"completion", "bash"}} {
		r := run(t, append([]string{ebpfprof}, argv...)...)
		if r.code != ok || r.stdout == "" || r.stderr != "" {
			t.Errorf("%q: exit code %d\nstderr: %s\nstdout: %s", argv, r.code, r.stderr, r.stdout)
		}
	}
}
