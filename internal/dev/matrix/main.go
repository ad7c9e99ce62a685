// Matrix boots the kernels that people run, under qemu without KVM, and runs the
// tracer's own tests and commands in them as root.
//
//	go run ./internal/dev/matrix [-short] [-kernels 6.1,7.3-arm64] [-write] [-do COMMAND]
//
// The short form loads each program by itself, with and without each feature that a
// kernel need not have, and asks doctor and run. The long form traces jobs as well.
// It exits with 1 when something failed, and says what was skipped and why. -do runs
// a command instead, in the guests of either form, and prints what that printed.
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
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"
)

func main() {
	short := flag.Bool("short", false, "the short form, on fewer kernels")
	names := flag.String("kernels", "", "the kernels to boot, such as 6.1,7.3-arm64 (all of the form if empty)")
	write := flag.Bool("write", false, "write docs/kernels.md of what the long form found, now and before")
	page := flag.Bool("page", false, "boot nothing: write docs/kernels.md of what the long form found")
	only := flag.String("only", "", "checks of the long form to do, by how their names begin, with commas between them; of the others, what "+
		"was found before stays")
	do := flag.String("do", "", "a shell command to run in the guests instead")
	flag.Parse()
	if err := run(*names, options{do: *do, only: *only, short: *short, write: *write, page: *page}); err != nil {
		fmt.Fprintln(os.Stderr, "matrix:", err)
		os.Exit(1)
	}
}

var errFailed = errors.New("not every kernel did what it should")

// options are what the flags say.
type options struct {
	do, only           string
	short, write, page bool
}

func run(names string, o options) error {
	if o.page {
		return writeFound()
	}
	for _, tool := range []string{"qemu-system-x86_64", "qemu-system-aarch64", "dpkg-deb", "apt-get"} {
		if _, err := exec.LookPath(tool); err != nil {
			return fmt.Errorf("%s is not installed: scripts/matrix.sh does it", tool)
		}
	}
	chosen := choose(names, o.short)
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
		machine: machine{directory: filepath.Join(cache, "matrix"), megabytes: 1536, limit: 30 * time.Minute},
	}
	s.packages.directory = s.directory
	unlock, err := lock(s.directory)
	if err != nil {
		return err
	}
	defer unlock()
	if !o.short {
		s.checks = append(slices.Clone(shortChecks), longChecks...)
		s.machine.megabytes, s.machine.limit = 6144, 40*time.Minute
	}
	s.long, s.libbpf = !o.short, o.do == ""
	s.only = strings.FieldsFunc(o.only, func(r rune) bool { return r == ',' })
	if o.do != "" {
		s.checks, o.write = []check{{"command", o.do, readCommand, false}}, false
	}
	if o.short {
		s.guests = 2 // each has one CPU; checks of the long form wait for jobs, which are slow enough alone
	}
	all, err := s.lookAll(chosen, func(k kernel, f *findings) error {
		if o.short || !o.write {
			return nil
		}
		if err := s.inherit(f, k); err != nil {
			return err
		}
		if err := f.keep(foundFile); err != nil {
			return fmt.Errorf("keeping what %s showed: %w", k.name, err)
		}
		return writeFound() // so far
	})
	if err != nil {
		return err
	}
	return verdict(all)
}

// writeFound writes docs/kernels.md of what the long form found on each kernel, when it
// was booted last.
func writeFound() error {
	all, err := kept(foundFile)
	if err != nil {
		return err
	}
	return writePage("docs/kernels.md", all)
}

// lock lets one call at a time build guests and boot them.
func lock(directory string) (unlock func(), err error) {
	if err := os.MkdirAll(directory, 0o755); err != nil {
		return nil, err
	}
	file, err := os.OpenFile(filepath.Join(directory, "lock"), os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, err
	}
	if unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB) != nil {
		fmt.Println("matrix: waiting for another call of it to end")
		if err := unix.Flock(int(file.Fd()), unix.LOCK_EX); err != nil {
			return nil, fmt.Errorf("locking %s: %w", file.Name(), err)
		}
	}
	return func() { file.Close() }, nil
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
		if f.Skipped == "" {
			booted++
		} else {
			fmt.Printf("matrix: %s was not booted: %s\n", f.Kernel, f.Skipped)
		}
		if len(f.Failures) > 0 {
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
	long      bool
	libbpf    bool              // kernels of this processor load objects by libbpf too, if it is built
	guests    int               // at once; 0 stands for one
	only      []string          // how the names of the checks to do begin; all if none
	bases     map[string]string // initramfs by architecture
}

// lookAll looks at kernels, in as many guests at once as the suite may have, and calls
// done with what each showed, one at a time.
func (s *suite) lookAll(chosen []kernel, done func(kernel, *findings) error) ([]*findings, error) {
	all := make([]*findings, len(chosen))
	var (
		guests   errgroup.Group
		finished sync.Mutex // between the guests' goroutines: read prints, and done writes files
	)
	guests.SetLimit(max(1, s.guests))
	for i, k := range chosen {
		// What a guest needs is fetched and built while the one before runs, one at a time.
		ready, err := s.prepare(k)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("%s: %w", k.name, err), guests.Wait())
		}
		guests.Go(func() error {
			f, died := s.look(k, ready)
			if died != nil && !errors.Is(died, errDied) {
				return fmt.Errorf("%s: %w", k.name, died)
			}
			finished.Lock()
			defer finished.Unlock()
			if all[i] = f; f.Skipped == "" {
				read(f, s.of(k), died)
			}
			return done(k, f)
		})
	}
	return all, guests.Wait()
}

// prepared is what a guest boots.
type prepared struct {
	image, base string
	skipped     string // why it cannot be booted
}

// prepare fetches a kernel and makes what its guest boots. A kernel that cannot be had
// is skipped.
func (s *suite) prepare(k kernel) (prepared, error) {
	deb, err := s.packages.file(k.Package, k.arch, k.version)
	if errors.Is(err, errGone) {
		return prepared{skipped: err.Error() + "; internal/dev/matrix/kernels.go has its pin"}, nil
	}
	if err != nil {
		return prepared{skipped: err.Error()}, nil
	}
	if s.bases[k.arch] == "" {
		if s.bases[k.arch], err = base(s.directory, k.arch, s.long, &s.packages); err != nil {
			return prepared{}, err
		}
	}
	image := filepath.Join(s.directory, "image-"+k.name+"-"+k.version)
	if _, err := os.Stat(image); err != nil {
		if err := extractImage(deb, image); err != nil {
			return prepared{}, err
		}
	}
	return prepared{image: image, base: s.bases[k.arch]}, nil
}

// look boots a kernel and has it do its checks. It returns errDied, and what there is,
// where the emulation dies twice.
func (s *suite) look(k kernel, ready prepared) (*findings, error) {
	f := newFindings(k, s.long)
	if ready.skipped != "" {
		f.Skipped = ready.skipped
		return f, nil
	}
	var commands []string
	for _, c := range s.of(k) {
		commands = append(commands, c.command)
	}
	var err error
	f.boot, err = s.machine.run(k, ready.image, ready.base, commands)
	return f, err
}

// of are the checks of a kernel.
func (s *suite) of(k kernel) (checks []check) {
	for _, c := range s.checks {
		if !c.ends || k.ends {
			checks = append(checks, c)
		}
	}
	if s.libbpf && k.asCompiled && libbpfHere(k.arch) {
		checks = append(checks, libbpfCheck(s.long))
	}
	if s.long {
		for _, keys := range k.without {
			checks = append(checks, withoutFeatures(keys))
		}
	}
	return slices.DeleteFunc(checks, func(c check) bool { return !s.wanted(c.name) })
}

// wanted reports whether a check is to be done.
func (s *suite) wanted(name string) bool {
	return len(s.only) == 0 || slices.ContainsFunc(s.only, func(begin string) bool { return strings.HasPrefix(name, begin) })
}

// inherit adds what was found before by the checks that were not to be done now.
func (s *suite) inherit(f *findings, k kernel) error {
	if len(s.only) == 0 {
		return nil
	}
	all, err := readFound(foundFile)
	if before := all[k.name]; before != nil {
		f.inherit(before, s.wanted)
	}
	return err
}

func read(f *findings, checks []check, died error) {
	f.Release = f.boot.release
	if died != nil {
		f.Failures = append(f.Failures, died.Error())
	}
	for i, c := range checks {
		r := f.boot.results[i]
		r.name = c.name
		f.Codes[c.name] = r.code
		if err := c.read(f, r); err != nil {
			f.Failures = append(f.Failures, c.name+": "+err.Error())
			fmt.Printf("matrix: %s: %s\n%s", f.Kernel, c.name, tail(r.output, 25))
		}
	}
	for _, line := range f.boot.unwell {
		f.Failures = append(f.Failures, "the guest's kernel complained: "+line)
	}
	most := 0
	for _, p := range f.Programs {
		most = max(most, p.Instructions)
	}
	fmt.Printf("%-11s %-28s %3.0f s  %d programs loaded, at most %d instructions\n", f.Kernel, f.Release, f.boot.took.Seconds(),
		len(f.Programs), most)
	for _, failure := range f.Failures {
		fmt.Printf("            FAILED %s\n", failure)
	}
}

func tail(s string, lines int) string {
	all := strings.SplitAfter(strings.TrimRight(s, "\n")+"\n", "\n")
	return strings.Join(all[max(0, len(all)-1-lines):], "")
}
