// Matrix boots the kernels that people run, under qemu without KVM, and runs the
// tracer's own tests and commands in them as root.
//
//	go run ./internal/matrix [-short] [-kernels 6.1,7.3-arm64] [-write]
//
// The short form loads each program by itself, with and without each feature that a
// kernel need not have, and asks doctor and run. The long form traces jobs as well.
// It exits with 1 when something failed, and says what was skipped and why.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

func main() {
	short := flag.Bool("short", false, "the short form, on fewer kernels")
	names := flag.String("kernels", "", "the kernels to boot, such as 6.1,7.3-arm64 (all of the form if empty)")
	write := flag.Bool("write", false, "write docs/kernels.md")
	flag.Parse()
	if err := run(*names, *short, *write); err != nil {
		fmt.Fprintln(os.Stderr, "matrix:", err)
		os.Exit(1)
	}
}

var errFailed = errors.New("not every kernel did what it should")

func run(names string, short, write bool) error {
	for _, tool := range []string{"qemu-system-x86_64", "qemu-system-aarch64", "dpkg-deb", "apt-get"} {
		if _, err := exec.LookPath(tool); err != nil {
			return fmt.Errorf("%s is not installed: testdata/setup/matrix.sh does it", tool)
		}
	}
	chosen := choose(names, short)
	if len(chosen) == 0 {
		return fmt.Errorf("no kernel is called %q: choose from %s", names, strings.Join(allNames(), ", "))
	}
	cache := os.Getenv("EBPFPROF_CACHE")
	if cache == "" {
		user, err := os.UserCacheDir()
		if err != nil {
			return err
		}
		cache = filepath.Join(user, "ebpfprof")
	}
	s := suite{
		directory: filepath.Join(cache, "matrix"), bases: map[string]string{}, checks: shortChecks,
		machine: machine{directory: filepath.Join(cache, "matrix"), megabytes: 1536, limit: 10 * time.Minute},
	}
	s.packages.directory = s.directory
	if !short {
		s.checks = append(slices.Clone(shortChecks), longChecks...)
		s.machine.megabytes, s.machine.limit = 6144, 40*time.Minute
	}
	var all []*findings
	for _, k := range chosen {
		f, err := s.look(k)
		if err != nil {
			return fmt.Errorf("%s: %w", k.name, err)
		}
		all = append(all, f)
	}
	if write {
		if err := writePage("docs/kernels.md", all, !short); err != nil {
			return err
		}
	}
	return verdict(all)
}

func allNames() (names []string) {
	for _, k := range kernels {
		names = append(names, k.name)
	}
	return names
}

func verdict(all []*findings) error {
	var err error
	booted := 0
	for _, f := range all {
		if f.skipped == "" {
			booted++
		} else {
			fmt.Printf("matrix: %s was not booted: %s\n", f.kernel.name, f.skipped)
		}
		if len(f.failures) > 0 {
			err = errFailed
		}
	}
	if booted == 0 {
		return errors.New("no kernel was booted")
	}
	return err
}

// suite is one call of this program.
type suite struct {
	directory string
	packages  packages
	machine   machine
	checks    []check
	bases     map[string]string // initramfs by architecture
}

// look boots a kernel and reads what it showed. A kernel that cannot be had is
// skipped, one whose emulation dies twice has failed.
func (s *suite) look(k kernel) (*findings, error) {
	f := &findings{kernel: k, features: map[string]bool{}, tests: map[string]tally{}}
	deb, err := s.packages.file(k.Package, k.arch, k.version)
	if errors.Is(err, errGone) {
		f.skipped = err.Error() + "; internal/matrix/kernels.go has its pin"
		return f, nil
	}
	if err != nil {
		f.skipped = err.Error()
		return f, nil
	}
	if s.bases[k.arch] == "" {
		if s.bases[k.arch], err = base(s.directory, k.arch, len(s.checks) > len(shortChecks), &s.packages); err != nil {
			return nil, err
		}
	}
	image := filepath.Join(s.directory, "image-"+k.name+"-"+k.version)
	if _, err := os.Stat(image); err != nil {
		if err := extractImage(deb, image); err != nil {
			return nil, err
		}
	}
	var commands []string
	for _, c := range s.checks {
		commands = append(commands, c.command)
	}
	f.boot, err = s.machine.run(k, image, s.bases[k.arch], commands)
	if err != nil && !errors.Is(err, errDied) {
		return nil, err
	}
	s.read(f, err)
	return f, nil
}

func (s *suite) read(f *findings, died error) {
	if died != nil {
		f.failures = append(f.failures, died.Error())
	}
	for i, c := range s.checks {
		r := f.boot.results[i]
		r.name = c.name
		if err := c.read(f, r); err != nil {
			f.failures = append(f.failures, c.name+": "+err.Error())
			fmt.Printf("matrix: %s: %s\n%s", f.kernel.name, c.name, tail(r.output, 25))
		}
	}
	for _, line := range f.boot.unwell {
		f.failures = append(f.failures, "the guest's kernel complained: "+line)
	}
	most := 0
	for _, p := range f.programs {
		most = max(most, p.instructions)
	}
	fmt.Printf("%-11s %-28s %3.0f s  %d programs loaded, at most %d instructions\n", f.kernel.name, f.boot.release, f.boot.took.Seconds(), len(f.programs), most)
	for _, failure := range f.failures {
		fmt.Printf("            FAILED %s\n", failure)
	}
}

func tail(s string, lines int) string {
	all := strings.SplitAfter(strings.TrimRight(s, "\n")+"\n", "\n")
	return strings.Join(all[max(0, len(all)-1-lines):], "")
}
