package main

import (
	"bytes"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// packages fetches Debian's packages of both architectures and several suites,
// without touching what the system's own apt knows.
type packages struct {
	directory  string
	configured bool
}

// errGone: the registry has that version no more.
var errGone = errors.New("gone from the registry")

// suites are where the kernels and the guests' packages come from.
var suites = []string{"bookworm", "bookworm-backports", "trixie", "trixie-backports", "sid"}

// file returns the package's file, fetched the first time. An empty version takes
// what the suite bookworm has.
func (p *packages) file(name, arch, version string) (string, error) {
	if path, ok := p.cached(name, arch, version); ok {
		return path, nil
	}
	if err := p.configure(); err != nil {
		return "", err
	}
	what := name + ":" + arch
	if version != "" {
		what += "=" + version
	} else {
		what += "/bookworm"
	}
	command := p.apt("download", what)
	command.Dir = p.debs()
	out, err := command.CombinedOutput()
	if err != nil && (bytes.Contains(out, []byte("was not found")) || bytes.Contains(out, []byte("Unable to locate")) ||
		bytes.Contains(out, []byte("404"))) {
		return "", fmt.Errorf("%s %s: %w", name, version, errGone)
	}
	if err != nil {
		return "", fmt.Errorf("fetching %s: %w: %s", what, err, bytes.TrimSpace(out))
	}
	path, ok := p.cached(name, arch, version)
	if !ok {
		return "", fmt.Errorf("fetching %s: apt left no file in %s", what, p.debs())
	}
	return path, nil
}

func (p *packages) debs() string { return filepath.Join(p.directory, "debs") }

func (p *packages) cached(name, arch, version string) (string, bool) {
	pattern := "*"
	if version != "" {
		pattern = strings.NewReplacer(":", "%3a").Replace(version)
	}
	for _, of := range []string{arch, "all"} {
		found, _ := filepath.Glob(filepath.Join(p.debs(), name+"_"+pattern+"_"+of+".deb"))
		if len(found) > 0 {
			return found[len(found)-1], true
		}
	}
	return "", false
}

func (p *packages) apt(arguments ...string) *exec.Cmd {
	command := exec.Command("apt-get", append([]string{"-q"}, arguments...)...)
	command.Env = append(os.Environ(), "APT_CONFIG="+filepath.Join(p.directory, "apt", "apt.conf"))
	return command
}

// configure makes an apt of our own. Its key is the system's, its mirror the one
// that the system uses, beside whose archive lies that of security updates.
func (p *packages) configure() error {
	if p.configured {
		return nil
	}
	apt := filepath.Join(p.directory, "apt")
	for _, d := range []string{"etc/apt.conf.d", "etc/preferences.d", "etc/sources.list.d", "state/lists/partial", "cache/archives/partial"} {
		if err := os.MkdirAll(filepath.Join(apt, d), 0o755); err != nil {
			return err
		}
	}
	if err := os.MkdirAll(p.debs(), 0o755); err != nil {
		return err
	}
	mirror, err := systemMirror()
	if err != nil {
		return err
	}
	const key = "signed-by=/usr/share/keyrings/debian-archive-keyring.gpg"
	var sources strings.Builder
	for _, suite := range suites {
		valid := ""
		if suite == "sid" { // a registry's copy of it can be older than its validity says
			valid = " check-valid-until=no"
		}
		fmt.Fprintf(&sources, "deb [arch=amd64,arm64 %s%s] %s %s main\n", key, valid, mirror, suite)
	}
	if security, ok := strings.CutSuffix(mirror, "/debian"); ok {
		fmt.Fprintf(&sources, "deb [arch=amd64,arm64 %s] %s/debian-security bookworm-security main\n", key, security)
	}
	files := map[string]string{
		"etc/sources.list": sources.String(),
		"state/status":     "",
		"apt.conf": fmt.Sprintf(`Dir::Etc "%[1]s/etc";
Dir::Etc::sourcelist "%[1]s/etc/sources.list";
Dir::Etc::sourceparts "%[1]s/etc/sources.list.d";
Dir::State "%[1]s/state";
Dir::State::status "%[1]s/state/status";
Dir::Cache "%[1]s/cache";
APT::Architecture "amd64";
APT::Architectures { "amd64"; "arm64"; };
APT::Sandbox::User "root";
Acquire::Languages "none";
Acquire::Retries "3";
`, apt),
	}
	for name, contents := range files {
		if err := os.WriteFile(filepath.Join(apt, name), []byte(contents), 0o644); err != nil {
			return err
		}
	}
	fmt.Println("matrix: reading the registry's lists of packages")
	if out, err := p.apt("update").CombinedOutput(); err != nil {
		return fmt.Errorf("reading the registry's lists of packages: %w: %s", err, bytes.TrimSpace(out))
	}
	p.configured = true
	return nil
}

// systemMirror is the archive that this system takes its packages from.
func systemMirror() (string, error) {
	out, err := exec.Command("apt-get", "indextargets", "--format", "$(REPO_URI)").Output()
	if err != nil {
		return "", fmt.Errorf("asking apt for its mirror: %w", err)
	}
	for line := range strings.Lines(string(out)) {
		line = strings.TrimSuffix(strings.TrimSpace(line), "/")
		if u, err := url.Parse(line); err == nil && u.Host != "" && !strings.Contains(line, "security") {
			return line, nil
		}
	}
	return "", errors.New("apt names no mirror of Debian")
}
