package main

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"time"
)

// writePage writes docs/kernels.md: what each kernel showed.
func writePage(path string, all []*findings, long bool) error {
	var b strings.Builder
	form := "the short form"
	if long {
		form = "the long form"
	}
	fmt.Fprintf(&b, `# Which kernels it runs on

Written by `+"`make matrix`"+` (%s) on %s: each kernel is one of Debian's, booted under qemu without KVM with one CPU, in
which the tracer's own tests and commands ran as root. What cannot be had there is in [limitations.md](limitations.md).

`, form, time.Now().UTC().Format(time.DateOnly))
	b.WriteString("## What was done on each\n\n| kernel | architecture |")
	checks := shortChecks
	if long {
		checks = append(slices.Clone(checks), longChecks...)
	}
	for _, c := range checks {
		fmt.Fprintf(&b, " %s |", c.name)
	}
	b.WriteString("\n| --- | --- |" + strings.Repeat(" --- |", len(checks)) + "\n")
	for _, f := range all {
		if f.skipped != "" {
			fmt.Fprintf(&b, "| %s | %s | not booted: %s |%s\n", f.kernel.name, f.kernel.arch, f.skipped, strings.Repeat(" |", len(checks)-1))
			continue
		}
		fmt.Fprintf(&b, "| %s | %s |", f.boot.release, f.kernel.arch)
		for i, c := range checks {
			fmt.Fprintf(&b, " %s |", f.says(c, f.boot.results[i]))
		}
		b.WriteString("\n")
	}
	booted := slices.DeleteFunc(slices.Clone(all), func(f *findings) bool { return f.skipped != "" })
	b.WriteString("\nCounts are of tests that passed. `run` records a job without a library to probe, which is its exit code 5.\n")
	writeFeatures(&b, booted)
	writeInstructions(&b, booted)
	return os.WriteFile(path, []byte(b.String()), 0o644)
}

// says is a cell: what a check showed.
func (f *findings) says(c check, r result) string {
	if i := slices.IndexFunc(f.failures, func(s string) bool { return strings.HasPrefix(s, c.name+": ") }); i >= 0 {
		return "**" + strings.TrimPrefix(f.failures[i], c.name+": ") + "**"
	}
	t, ok := f.tests[c.name]
	switch {
	case !ok:
		return fmt.Sprintf("ok (exit code %d)", r.code)
	case t.skipped > 0:
		return fmt.Sprintf("%d, %d skipped", t.passed, t.skipped)
	}
	return fmt.Sprint(t.passed)
}

func writeFeatures(b *strings.Builder, all []*findings) {
	keys := map[string]bool{}
	for _, f := range all {
		for key := range f.features {
			keys[key] = true
		}
	}
	b.WriteString("\n## What each has\n\nFound by trying. What a kernel has not is gone without; each way was loaded on the others too.\n\n| feature |")
	for _, f := range all {
		fmt.Fprintf(b, " %s |", f.kernel.name)
	}
	b.WriteString("\n| --- |" + strings.Repeat(" --- |", len(all)) + "\n")
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		fmt.Fprintf(b, "| `%s` |", key)
		for _, f := range all {
			has := "no"
			if f.features[key] {
				has = "yes"
			}
			fmt.Fprintf(b, " %s |", has)
		}
		b.WriteString("\n")
	}
}

// writeInstructions is the verifier's table: per program what this kernel loads, and
// the most of all ways.
func writeInstructions(b *strings.Builder, all []*findings) {
	b.WriteString("\n## What the verifier looks at\n\nInstructions, as this kernel loads the program; behind the slash the most of all ways in which it was loaded, where that is more.\n" +
		"A test holds them below 100,000 (`tracer/loads_test.go`); the kernel's limit is a million.\n\n| program |")
	names := map[string]bool{}
	for _, f := range all {
		fmt.Fprintf(b, " %s |", f.kernel.name)
		for _, p := range f.programs {
			names[p.name] = true
		}
	}
	b.WriteString("\n| --- |" + strings.Repeat(" ---: |", len(all)) + "\n")
	for _, name := range slices.Sorted(maps.Keys(names)) {
		fmt.Fprintf(b, "| `%s` |", name)
		for _, f := range all {
			own, most := 0, 0
			for _, p := range f.programs {
				if p.name != name {
					continue
				}
				if p.without == "all" {
					own = p.instructions
				}
				most = max(most, p.instructions)
			}
			switch {
			case own == 0:
				b.WriteString(" refused |")
			case most > own:
				fmt.Fprintf(b, " %d / %d |", own, most)
			default:
				fmt.Fprintf(b, " %d |", own)
			}
		}
		b.WriteString("\n")
	}
}
