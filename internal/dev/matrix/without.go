package main

import (
	"fmt"
	"slices"
	"strings"
)

// Kernels that cannot be had are approached from newer ones, with features switched off.

// Exit codes where the kernel cannot trace (docs/commands.md): of doctor, and of run, which then has no command's to return.
const (
	exitKernel     = 4
	exitNotStarted = 125
)

// without is what a kernel showed without some features.
type without struct {
	Keys, Date     string
	Recorded, Made int  // calls of a stub runtime
	Loads          bool // doctor says so, and run agrees
	Refused        bool // both refuse it, because the kernel could panic
}

// withoutFeatures is the check of a set of features, by their keys with commas between
// them: doctor and run, and the calls of a stub runtime.
func withoutFeatures(keys string) check {
	return check{
		name: "without " + keys,
		command: "export EBPFPROF_WITHOUT=" + keys + "; agent doctor; d=$?; agent run --json --output /out/without -- /usr/bin/busybox true; " +
			"r=$?; rm -rf /out/without; cd /w/internal/testkit/e2e && e2e.test -test.v -test.run TestEveryCallOfCUDA; t=$?; echo " +
			"\"without: $d $r $t\"",
		read: func(f *findings, r result) error { return f.readWithout(keys, r) },
	}
}

func (f *findings) readWithout(keys string, r result) error {
	w := without{Keys: keys, Date: f.Date}
	for line := range strings.Lines(r.output) {
		if m := counted.FindStringSubmatch(line); m != nil {
			_, _ = fmt.Sscan(m[2], &w.Recorded)
			_, _ = fmt.Sscan(m[3], &w.Made)
		}
	}
	var doctor, run, tests int
	if _, err := fmt.Sscanf(lastLine(r.output), "without: %d %d %d", &doctor, &run, &tests); err != nil || !r.ended {
		return fmt.Errorf("it did not end")
	}
	if doctor == exitKernel && run == exitNotStarted && strings.Contains(r.output, "private stacks") {
		w.Refused = true
		f.Without = append(f.Without, w)
		return nil
	}
	wrong := readDoctor(f, result{code: doctor, output: r.output, ended: true})
	if wrong == nil {
		wrong = readRun(f, result{code: run, output: r.output})
	}
	w.Loads = wrong == nil
	f.Without = append(f.Without, w)
	switch {
	case wrong != nil:
		return wrong
	case !strings.Contains(r.output, "switched off by EBPFPROF_WITHOUT"):
		return fmt.Errorf("nothing was switched off")
	case tests != 0 || w.Made == 0 || w.Recorded != w.Made:
		return fmt.Errorf("%d of %d calls recorded, exit code %d", w.Recorded, w.Made, tests)
	}
	return nil
}

// writeWithout is the table of them.
func writeWithout(b *strings.Builder, all []*findings) {
	if !slices.ContainsFunc(all, func(f *findings) bool { return len(f.Without) > 0 }) {
		b.WriteString("\n## With features switched off\n\nNot run yet.\n")
		return
	}
	b.WriteString("\n## With features switched off\n\nWhat older kernels have not, taken from those that were run: doctor, run, and the " +
		"calls of a stub runtime.\n\n" +
		"| kernel | without | date | programs load, doctor and run agree | recorded of calls made |\n| --- | --- | --- | --- | ---: |\n")
	for _, f := range all {
		for _, w := range f.Without {
			loads := "no"
			switch {
			case w.Refused:
				fmt.Fprintf(b, "| %s | `%s` | %s | refused by both: its programs run on private stacks | |\n", f.Kernel, strings.ReplaceAll(w.Keys, ",",
					"`, `"), w.Date)
				continue
			case w.Loads:
				loads = "yes"
			}
			fmt.Fprintf(b, "| %s | `%s` | %s | %s | %d / %d |\n", f.Kernel, strings.ReplaceAll(w.Keys, ",", "`, `"), w.Date, loads, w.Recorded,
				w.Made)
		}
	}
}
