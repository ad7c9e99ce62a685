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
	help, err := r.says("ebpfprof-agent", "--help")
	if err != nil {
		return err
	}
	if err := agentManual(filepath.Join(dir, "ebpfprof-agent.8"), string(help), "deploy/agent.yaml"); err != nil {
		return err
	}
	return r.completions(dir)
}

// says is what one of the programs prints, if this machine can run it; texts are the same for every processor, so that any
// build of the source does.
func (r release) says(name string, arguments ...string) ([]byte, error) {
	run := []string{map[string]string{"ebpfprof": r.program, "ebpfprof-agent": r.agent}[name]}
	if r.arch != runtime.GOARCH {
		run = []string{"go", "run", "./cmd/" + name}
	} else if path, err := filepath.Abs(run[0]); err == nil {
		run[0] = path
	}
	text, err := exec.Command(run[0], append(run[1:], arguments...)...).Output()
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", name, strings.Join(arguments, " "), err)
	}
	return text, nil
}

// completions are printed by the programs themselves.
func (r release) completions(dir string) error {
	for _, name := range []string{"ebpfprof", "ebpfprof-agent"} {
		for _, shell := range []string{"bash", "zsh", "fish"} {
			script, err := r.says(name, "completion", shell)
			if err != nil {
				return err
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

// agentManual makes the agent's page of its help, and of the configuration that it is installed with.
func agentManual(to, help, configuration string) error {
	settings, err := os.ReadFile(configuration)
	if err != nil {
		return err
	}
	page := "% ebpfprof-agent 8\n\n# NAME\nebpfprof-agent - finds machine-learning jobs on a node and records them with eBPF\n\n" +
		"# SYNOPSIS\n**ebpfprof-agent** --config FILE [--check]\n\n**ebpfprof-agent** COMMAND [options]\n\n" +
		"# DESCRIPTION\nWith --config it stays on the node; SIGHUP has it read FILE again, and --check looks at FILE alone. " +
		"COMMAND is one of those that record, which **ebpfprof**(1) describes.\n\n" + indented(help) +
		"# CONFIGURATION\n" + indented(string(settings))
	return os.WriteFile(to, md2man.Render([]byte(page)), 0o644)
}

// indented is a text that a page has as it is.
func indented(text string) string { return "```\n" + strings.TrimSpace(text) + "\n```\n\n" }

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
