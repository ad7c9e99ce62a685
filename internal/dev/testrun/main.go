// Testrun runs `go test -json` and prints what a person wants of it: failures
// with their output, then every skipped test with its reason, then the totals,
// and last what failed, by name. A failure that is repeated is no FAIL until it
// has failed again: what it said is held back until then.
//
//	go run ./internal/dev/testrun [-again N] -- [ARGUMENT OF go test …]
//
// It exits with 1 when a test failed or none ran, and when a test was skipped
// for a feature that this kernel must have. With -again N up to N tests that
// failed beside others are run once more, each by itself: those that then pass
// do not fail the run, and its last lines name them, for each is a defect of
// the test or of what it tests. CONTRIBUTING.md lists these, and how often: who
// is there twice already fails the run at the third time. Tests that say in
// their name that nobody is harmed have no second try, and nobody has where a
// process died by a signal.
package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

func main() {
	again := flag.Int("again", 0, "how many tests that failed are run once more, each by itself")
	flag.Parse()
	began := time.Now()
	r := newReport(os.Stdout)
	r.strict = os.Geteuid() == 0 && kernelAtLeast(release(), 6, 6)
	r.again = *again
	r.known = knownDefects("CONTRIBUTING.md")
	used, err := goTest(r, flag.Args())
	if err == nil {
		for _, n := range r.repeatable() {
			fmt.Printf("again? %s: its second try begins\n", n)
			second := newReport(os.Stdout)
			second.again = *again
			more, failed := goTest(second, onlyTest(flag.Args(), n))
			used, err = used+more, errors.Join(err, failed)
			r.repeated(n, second)
		}
	}
	took := time.Since(began)
	fmt.Printf("%.0f s, %.1f CPUs busy\n", took.Seconds(), used.Seconds()/took.Seconds())
	ok := r.finish()
	if err != nil {
		fmt.Fprintln(os.Stderr, "testrun:", err)
	}
	if !ok || err != nil {
		os.Exit(1)
	}
}

// goTest runs go test into a report, and returns the CPU time that it took. That tests
// failed is no error; a go test that failed without one is a failure of the report.
func goTest(r *report, args []string) (used time.Duration, err error) {
	command := exec.Command("go", append([]string{"test", "-json"}, args...)...)
	command.Stderr = os.Stderr
	out, err := command.StdoutPipe()
	if err == nil {
		err = command.Start()
	}
	if err != nil {
		return 0, err
	}
	// What is held back is printed also where a run is broken off.
	interrupted, stop := signal.NotifyContext(context.Background(), unix.SIGINT, unix.SIGTERM)
	defer stop()
	defer context.AfterFunc(interrupted, func() { out.Close() })()
	if err := r.read(out); err != nil {
		return 0, fmt.Errorf("reading the output of go test: %w", err)
	}
	var exit *exec.ExitError
	if err := command.Wait(); errors.As(err, &exit) {
		if len(r.failed)+len(r.other) == 0 {
			r.other = append(r.other, "go test: "+err.Error())
		}
	} else if err != nil {
		return 0, err
	}
	return command.ProcessState.SystemTime() + command.ProcessState.UserTime(), nil
}

func release() string {
	var u unix.Utsname
	if unix.Uname(&u) != nil {
		return ""
	}
	return string(bytes.TrimRight(u.Release[:], "\x00"))
}

// kernelAtLeast compares a release such as "6.1.0-18-amd64".
func kernelAtLeast(release string, major, minor int) bool {
	parts := strings.SplitN(release, ".", 3)
	if len(parts) < 2 {
		return false
	}
	digits := strings.IndexFunc(parts[1]+" ", func(r rune) bool { return r < '0' || r > '9' })
	a, errA := strconv.Atoi(parts[0])
	b, errB := strconv.Atoi(parts[1][:digits])
	return errA == nil && errB == nil && (a > major || a == major && b >= minor)
}
