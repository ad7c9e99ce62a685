// Package testbucket serves buckets to tests: versitygw, of scripts/versitygw.sh, on
// a directory.
package testbucket

import (
	"bytes"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/ebpfprof/ebpfprof/internal/testkit/testcache"
)

// Server is one with a bucket "profiles".
type Server struct {
	Directory, Address string
	options            []string
	running            *exec.Cmd
}

// Forgetful is an option of Serve.
const Forgetful = "--nometa"

// Secret is the server's.
const Secret = "a secret of the tests"

// Serve starts a server whose objects lie in a directory. The environment has its
// credentials for the rest of the test, which is skipped where versitygw is not. It keeps
// what it knows of objects in another directory; with Forgetful it keeps nothing, and
// takes no notice of conditions.
func Serve(t *testing.T, directory string, options ...string) *Server {
	t.Helper()
	if len(options) == 0 {
		options = []string{"--sidecar", t.TempDir()}
	}
	s := &Server{Directory: directory, options: options}
	if err := os.MkdirAll(filepath.Join(directory, "profiles"), 0o755); err != nil {
		t.Fatal(err)
	}
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s.Address = free.Addr().String()
	free.Close()
	t.Setenv("AWS_ACCESS_KEY_ID", "tests")
	t.Setenv("AWS_SECRET_ACCESS_KEY", Secret)
	s.Start(t)
	t.Cleanup(s.Kill)
	return s
}

// Start starts it again, where it was.
func (s *Server) Start(t *testing.T) {
	t.Helper()
	const missing = "no versitygw here: make s3 builds it"
	found, _ := filepath.Glob(filepath.Join(testcache.Path(t, "versitygw", missing), "v*", "versitygw"))
	if len(found) == 0 {
		t.Skip(missing)
	}
	s.running = exec.Command(found[len(found)-1], "--port", s.Address, "--access", "tests", "--secret", Secret, "posix")
	s.running.Args = append(append(s.running.Args, s.options...), s.Directory)
	var out bytes.Buffer
	s.running.Stdout, s.running.Stderr = &out, &out
	if err := s.running.Start(); err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		c, err := net.Dial("tcp", s.Address)
		if err == nil {
			c.Close()
			return
		}
		if time.Now().After(end) {
			s.Kill()
			t.Fatalf("versitygw does not listen: %v\n%s", err, out.String())
		}
	}
}

// Kill ends it at once.
func (s *Server) Kill() {
	_ = s.running.Process.Kill()
	_ = s.running.Wait()
}

// Location is the address of a store in its bucket.
func (s *Server) Location() string {
	return "s3://profiles/fleet?region=us-east-1&endpoint=http://" + s.Address
}
