package recorder

import (
	"os"

	"golang.org/x/sys/unix"
)

// terminalState is how a terminal was before it gave each key at once.
type terminalState struct {
	fd     int
	before unix.Termios
}

// readKeys has a terminal hand over keys as they are pressed, without showing
// them. Ctrl-C stays a signal.
func readKeys(f *os.File) (*terminalState, error) {
	t := &terminalState{fd: int(f.Fd())}
	now, err := unix.IoctlGetTermios(t.fd, unix.TCGETS)
	if err != nil {
		return nil, err
	}
	t.before = *now
	now.Lflag &^= unix.ICANON | unix.ECHO
	now.Cc[unix.VMIN], now.Cc[unix.VTIME] = 1, 0
	return t, unix.IoctlSetTermios(t.fd, unix.TCSETS, now)
}

func (t *terminalState) restore() { _ = unix.IoctlSetTermios(t.fd, unix.TCSETS, &t.before) }
