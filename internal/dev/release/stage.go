package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"

	"github.com/cpuguy83/go-md2man/v2/md2man"
)

// stage writes everything that packages contain, and their descriptions, below a directory.
func (r release) stage(dir string) error {
	files := map[string]string{
		"ebpfprof": r.program, "ebpfprof-agent": r.agent, "LICENSE": "LICENSE",
		"agent.yaml": "deploy/agent.yaml", "alerts.yaml": "deploy/alerts.yaml", "dashboard.json": "deploy/dashboard.json",
		"packages/ebpfprof.yaml": "deploy/packages/ebpfprof.yaml", "packages/ebpfprof-agent.yaml": "deploy/packages/ebpfprof-agent.yaml",
		"packages/reload.sh": "deploy/packages/reload.sh",
		"packages/stop.sh":   "deploy/packages/stop.sh", "packages/stop-registrar.sh": "deploy/packages/stop-registrar.sh",
		"ebpfprof-registrar.timer": "deploy/ebpfprof-registrar.timer",
	}
	if err := os.Mkdir(filepath.Join(dir, "packages"), 0o755); err != nil {
		return err
	}
	for to, from := range files {
		text, err := os.ReadFile(from)
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, to), text, 0o644); err != nil {
			return err
		}
	}
	// What packages install is in /usr; /usr/local is for what an administrator copies there.
	for _, unit := range []string{"ebpfprof-agent.service", "ebpfprof-registrar.service"} {
		text, err := os.ReadFile(filepath.Join("deploy", unit))
		if err != nil {
			return err
		}
		text = bytes.ReplaceAll(text, []byte("/usr/local/bin/"), []byte("/usr/bin/"))
		if err := os.WriteFile(filepath.Join(dir, unit), text, 0o644); err != nil {
			return err
		}
	}
	if err := manual(filepath.Join(dir, "ebpfprof.1"), "docs/commands.md"); err != nil {
		return err
	}
	return r.completions(dir)
}

// completions are printed by the programs themselves, if this machine can run them; the scripts are the same for every
// processor, so that any build of the source does.
func (r release) completions(dir string) error {
	for _, name := range []string{"ebpfprof", "ebpfprof-agent"} {
		run := []string{map[string]string{"ebpfprof": r.program, "ebpfprof-agent": r.agent}[name]}
		if r.arch != runtime.GOARCH {
			run = []string{"go", "run", "./cmd/" + name}
		} else if path, err := filepath.Abs(run[0]); err == nil {
			run[0] = path
		}
		for _, shell := range []string{"bash", "zsh", "fish"} {
			script, err := exec.Command(run[0], append(run[1:], "completion", shell)...).Output()
			if err != nil {
				return fmt.Errorf("%s completion %s: %w", name, shell, err)
			}
			if err := os.WriteFile(filepath.Join(dir, name+"."+shell), script, 0o644); err != nil {
				return err
			}
		}
	}
	return nil
}

var anchor = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)

// manual makes a manual page of the commands' help, which docs/commands.md is generated from.
func manual(to, from string) error {
	text, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	_, body, found := strings.Cut(string(text), "# Commands\n")
	if !found {
		return fmt.Errorf("%s does not begin with its heading", from)
	}
	// Links lead nowhere on a terminal, and a level of headings is the page's own.
	body = anchor.ReplaceAllString(body, "$1")
	page := "% ebpfprof 1\n\n# NAME\nebpfprof - profiles machine-learning jobs with eBPF, without changing the job\n\n# COMMANDS\n" + body
	return os.WriteFile(to, md2man.Render([]byte(page)), 0o644)
}

var described = regexp.MustCompile(`^v?(\d+(?:\.\d+)*)(?:-(.*))?$`)

// packageVersion is a version as git describes it, by the rules of deb and rpm, which allow no hyphen: four commits behind
// v0.3.0 is 0.3.0+4.g1a78d23, and what no tag names sorts before every release.
func packageVersion(git string) string {
	m := described.FindStringSubmatch(git)
	if m == nil {
		return "0.0.0+g" + strings.ReplaceAll(git, "-", ".")
	}
	if m[2] == "" {
		return m[1]
	}
	return m[1] + "+" + strings.ReplaceAll(m[2], "-", ".")
}
