package page

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
)

// Listen listens on a port of loopback, 0 is any free one. Other addresses are not offered: whoever reaches the port
// could try tokens, and the page has no encryption. From elsewhere: SSH.
func Listen(port int) (net.Listener, error) {
	listener, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if errors.Is(err, syscall.EADDRINUSE) {
		return nil, fmt.Errorf("port %d is taken: choose another with --port, or 0 for a free one", port)
	}
	if err != nil {
		return nil, fmt.Errorf("listening on port %d: %w", port, err)
	}
	return listener, nil
}

// ListenSocket listens on a Unix socket that only this user can open. The socket of a server that was killed is replaced.
func ListenSocket(path string) (net.Listener, error) {
	if info, err := os.Lstat(path); err == nil {
		if info.Mode().Type() != os.ModeSocket {
			return nil, fmt.Errorf("%s exists and is no socket: choose another path", path)
		}
		if conn, err := net.Dial("unix", path); err == nil {
			conn.Close()
			return nil, fmt.Errorf("%s is taken by a server that runs: choose another path", path)
		}
	}
	// A socket is reachable from when it is bound, before chmod: it is made in a directory of our own and moved.
	private, err := os.MkdirTemp(filepath.Dir(path), ".ebpfprof-")
	if err != nil {
		return nil, fmt.Errorf("making socket %s: %w", path, err)
	}
	defer os.RemoveAll(private)
	made := filepath.Join(private, "s")
	listener, err := net.Listen("unix", made)
	if err != nil {
		return nil, fmt.Errorf("making socket %s: %w", path, err)
	}
	listener.(*net.UnixListener).SetUnlinkOnClose(false)
	if err := errors.Join(os.Chmod(made, 0o600), os.Rename(made, path)); err != nil {
		return nil, errors.Join(fmt.Errorf("making socket %s: %w", path, err), listener.Close())
	}
	return &socket{listener, path}, nil
}

// socket removes its file when it is closed.
type socket struct {
	net.Listener
	path string
}

func (s *socket) Close() error { return errors.Join(s.Listener.Close(), os.Remove(s.path)) }
