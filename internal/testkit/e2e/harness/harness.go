// Package harness is what the end-to-end tests stand on: it builds ebpfprof once, finds
// what is installed to be traced, starts jobs, records them, and asks the datasets.
//
// Tests themselves say which run beside each other, and the rest is
// Go's. A test that compares times, or shares of time, has the machine alone: it is an
// ordinary test, and those run first, one after the other. A test that counts, or
// waits, calls Beside (or Torch.Beside, BesideEachTorch): it is a parallel test, and no
// two such tests trace the same library at a time.
//
// A command, a recording and a build belong to the package's one run: what a test
// started is killed at its end, what was recorded is deleted at the end of all
// (EBPFPROF_KEEP=1 keeps it).
package harness

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"github.com/ebpfprof/ebpfprof/internal/testkit/testkernel"
)

var (
	// Scratch is the directory of this run, deleted at its end.
	Scratch string
	// Binary is the ebpfprof under test. It is there after NeedKernel.
	Binary string
)

// Main runs a package's tests with a directory of their own. TestMain calls it, with
// its result os.Exit.
func Main(m *testing.M) int {
	var err error
	if Scratch, err = os.MkdirTemp("", "ebpfprof-e2e-"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	if os.Getenv("EBPFPROF_KEEP") == "" {
		defer os.RemoveAll(Scratch)
	} else {
		defer fmt.Fprintln(os.Stderr, "kept", Scratch)
	}
	Binary = filepath.Join(Scratch, "ebpfprof")
	return m.Run()
}

var build = sync.OnceValue(func() error { return Build(Binary, "../../../cmd/ebpfprof") })

// Build builds a program of this repository.
func Build(to, pkg string, flags ...string) error {
	out, err := exec.Command("go", append(append(BuildLine(to), flags...), pkg)...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("building %s: %w\n%s", pkg, err, out)
	}
	return nil
}

// BuildLine are the arguments of a go command that builds a program, for which a hit of a probe
// has EBPFPROF_PRICE times the price that is measured on this machine: as on a slower or a
// faster one.
func BuildLine(to string) []string {
	line := []string{"build", "-o", to}
	if price := os.Getenv("EBPFPROF_PRICE"); price != "" {
		line = append(line, "-ldflags", "-X github.com/ebpfprof/ebpfprof/tracer/kernel.priceFactor="+price)
	}
	return line
}

// NeedKernel skips where nothing can be probed, and has the binary built.
func NeedKernel(t *testing.T) {
	t.Helper()
	testkernel.Need(t)
	if err := build(); err != nil {
		t.Fatal(err)
	}
}

// Cache is the directory that keeps what `make` fetches to be traced.
func Cache() string {
	if dir := os.Getenv("EBPFPROF_CACHE"); dir != "" {
		return dir
	}
	home, _ := os.UserHomeDir()
	return filepath.Join(home, ".cache", "ebpfprof")
}

// Ask runs ebpfprof and decodes the JSON that it writes.
func Ask(t *testing.T, into any, arguments ...string) {
	t.Helper()
	command := exec.CommandContext(t.Context(), Binary, arguments...)
	var complaints bytes.Buffer
	command.Stderr = &complaints
	out, err := command.Output()
	if err == nil {
		err = json.Unmarshal(out, into)
	}
	if err != nil {
		t.Fatalf("%v: %v: %s", arguments, err, complaints.String())
	}
}

// FreePort is a TCP port of this machine that was free just now.
func FreePort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, port, _ := net.SplitHostPort(l.Addr().String())
	return port
}
