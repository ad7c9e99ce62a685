// Testrun runs `go test -json` and prints what a person wants of it: failures
// with their output, then every skipped test with its reason, then the totals.
//
//	go run ./internal/testrun -- [ARGUMENT OF go test …]
//
// It exits with 1 when a test failed or none ran, and when a test was skipped
// for a feature that this kernel must have.
package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

func main() {
	args := os.Args[1:]
	if len(args) > 0 && args[0] == "--" {
		args = args[1:]
	}
	os.Exit(run(args))
}

func run(args []string) int {
	command := exec.Command("go", append([]string{"test", "-json"}, args...)...)
	command.Stderr = os.Stderr
	out, err := command.StdoutPipe()
	if err == nil {
		err = command.Start()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "testrun:", err)
		return 1
	}
	r := newReport(os.Stdout)
	r.strict = os.Geteuid() == 0 && kernelAtLeast(release(), 6, 6)
	readErr := r.read(out)
	waitErr := command.Wait()
	ok := r.finish()
	if readErr != nil {
		fmt.Fprintln(os.Stderr, "testrun: reading the output of go test:", readErr)
	}
	if !ok || readErr != nil || waitErr != nil {
		return 1
	}
	return 0
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
