package main

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/ebpfprof/ebpfprof/tracer/features"
)

// writePage writes docs/kernels.md: what each kernel showed.
func writePage(path string, all []*findings) error {
	var b strings.Builder
	b.WriteString(`# Which kernels it runs on

Written by ` + "`make matrix`" + `: each kernel is one of Debian's, booted under qemu without KVM with one CPU, in
which the tracer's own tests and commands ran as root, on the date beside it, or on that in brackets. What
cannot be had there is in [limitations.md](limitations.md).

`)
	b.WriteString("## What was done on each\n\n| kernel | architecture | date |")
	checks := slices.Concat(shortChecks, longChecks)
	for _, c := range checks {
		fmt.Fprintf(&b, " %s |", c.name)
	}
	b.WriteString("\n| --- | --- | --- |" + strings.Repeat(" --- |", len(checks)) + "\n")
	for _, f := range all {
		if f.Skipped != "" {
			fmt.Fprintf(&b, "| %s | %s | %s | not booted: %s |%s\n", f.Kernel, f.Arch, f.Date, f.Skipped, strings.Repeat(" |", len(checks)-1))
			continue
		}
		fmt.Fprintf(&b, "| %s | %s | %s |", f.Release, f.Arch, f.Date)
		for _, c := range checks {
			fmt.Fprintf(&b, " %s |", f.cell(c))
		}
		b.WriteString("\n")
	}
	booted := slices.DeleteFunc(slices.Clone(all), func(f *findings) bool { return f.Skipped != "" })
	b.WriteString("\nCounts are of tests that passed; the tests of stub runtimes compare every call. `run` records a job without a library " +
		"to\nprobe.\n")
	writeCounts(&b, booted)
	writeTimes(&b, booted)
	writeFeatures(&b, booted)
	writeWithout(&b, booted)
	writeInstructions(&b, booted)
	return os.WriteFile(path, []byte(b.String()), 0o644)
}

// cell is what a check showed, and when, if that was on another day than the rest.
func (f *findings) cell(c check) string {
	if date := f.Dates[c.name]; date != "" {
		return f.says(c) + " (" + date + ")"
	}
	return f.says(c)
}

// says is what a check showed.
func (f *findings) says(c check) string {
	if i := slices.IndexFunc(f.Failures, func(s string) bool { return strings.HasPrefix(s, c.name+": ") }); i >= 0 {
		return "**" + strings.TrimPrefix(f.Failures[i], c.name+": ") + "**"
	}
	t, ok := f.Tests[c.name]
	code, ran := f.Codes[c.name]
	switch {
	case !ran:
		if c.ends {
			return "oldest and newest only"
		}
		return "not run"
	case !ok:
		return fmt.Sprintf("ok (exit code %d)", code)
	case t.Skipped > 0:
		return fmt.Sprintf("%d, %d skipped", t.Passed, t.Skipped)
	}
	return fmt.Sprint(t.Passed)
}

// writeCounts writes what was recorded of what was made.
func writeCounts(b *strings.Builder, all []*findings) {
	var names []string
	for _, f := range all {
		for _, c := range f.Counts {
			if !slices.Contains(names, c.Of) {
				names = append(names, c.Of)
			}
		}
	}
	b.WriteString("\n## Recorded of what there was\n\nCalls of stub runtimes and of PoCL, each compared with the job's own list of calls " +
		"and answers; entries\n" +
		"of functions that throw, and how many of them ended by an exit or an exception; samples, and how many of their\n" +
		"stacks are known to the thread's start.\n\n| of |")
	for _, f := range all {
		fmt.Fprintf(b, " %s |", f.Kernel)
	}
	b.WriteString("\n| --- |" + strings.Repeat(" ---: |", len(all)) + "\n")
	for _, name := range names {
		fmt.Fprintf(b, "| %s |", name)
		for _, f := range all {
			i := slices.IndexFunc(f.Counts, func(c count) bool { return c.Of == name })
			if i < 0 {
				b.WriteString(" |")
				continue
			}
			fmt.Fprintf(b, " %d / %d |", f.Counts[i].Recorded, f.Counts[i].Made)
		}
		b.WriteString("\n")
	}
}

// writeTimes writes what probes take to put in and to take out: a reason to wait where
// each is a perf event.
func writeTimes(b *strings.Builder, all []*findings) {
	b.WriteString("\n## What a probe takes\n\nMilliseconds to attach one and to detach it, of 200 in one process, on the emulated " +
		"machine.\n\n" +
		"| kernel | way | attach | detach |\n| --- | --- | ---: | ---: |\n")
	for _, f := range all {
		for _, t := range f.Times {
			fmt.Fprintf(b, "| %s | %s | %s | %s |\n", f.Kernel, t.Way, t.Attach, t.Detach)
		}
	}
}

// writeFeatures is the table of features, by the kernels that have them.
func writeFeatures(b *strings.Builder, found []*findings) {
	b.WriteString("\n## What each has\n\nFound by trying, since distributions carry features back; `since` is the version that brought it. " +
		"What a kernel has\nnot is gone without.\n\n| feature | since | without it |")
	for _, f := range found {
		fmt.Fprintf(b, " %s |", f.Kernel)
	}
	b.WriteString("\n| --- | --- | --- |" + strings.Repeat(" --- |", len(found)) + "\n")
	for _, feature := range features.All() {
		fmt.Fprintf(b, "| %s (`%s`) | %s | %s |", feature.Name, feature.Key, feature.Since, feature.Without)
		for _, f := range found {
			has := "no"
			if there, tried := f.Features[feature.Key]; there {
				has = "yes"
			} else if !tried { // the feature is younger than what was found
				has = "not tried"
			}
			fmt.Fprintf(b, " %s |", has)
		}
		b.WriteString("\n")
	}
}

// writeInstructions is the verifier's table: per program what this kernel loads, and
// the most of all ways.
func writeInstructions(b *strings.Builder, all []*findings) {
	b.WriteString("\n## What the verifier looks at\n\nInstructions, as this kernel loads the program; behind the slash the most of all ways " +
		"in which it was loaded, where that\nis more; not tried: refused, or newer than what was run there.\n" +
		"A test holds them below 100,000 (`tracer/loads_test.go`); the kernel's limit is a million.\n\n| program |")
	names := map[string]bool{}
	for _, f := range all {
		fmt.Fprintf(b, " %s |", f.Kernel)
		for _, p := range f.Programs {
			names[p.Name] = true
		}
	}
	b.WriteString("\n| --- |" + strings.Repeat(" ---: |", len(all)) + "\n")
	for _, name := range slices.Sorted(maps.Keys(names)) {
		fmt.Fprintf(b, "| `%s` |", name)
		for _, f := range all {
			own, most := 0, 0
			for _, p := range f.Programs {
				if p.Name != name {
					continue
				}
				if p.Without == "all" {
					own = p.Instructions
				}
				most = max(most, p.Instructions)
			}
			switch {
			case own == 0:
				b.WriteString(" not tried |")
			case most > own:
				fmt.Fprintf(b, " %d / %d |", own, most)
			default:
				fmt.Fprintf(b, " %d |", own)
			}
		}
		b.WriteString("\n")
	}
}
