package assistant

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"
)

const (
	// longest is how long one answer may take, mostBytes how long it may be: an assistant pays for what it reads.
	longest   = 2 * time.Minute
	mostBytes = 256 << 10
)

// Runner runs a command of this program with its arguments and standard input. complaint is what it wrote to standard
// error; err says that it failed.
type Runner func(ctx context.Context, stdin string, args ...string) (out []byte, complaint string, err error)

// Program is the Runner that starts the program at path, with limits of time and output.
func Program(path string) Runner {
	return func(ctx context.Context, stdin string, args ...string) ([]byte, string, error) {
		ctx, cancel := context.WithTimeout(ctx, longest)
		defer cancel()
		command := exec.CommandContext(ctx, path, args...)
		command.Env = append(os.Environ(), "NO_COLOR=1")
		command.Stdin = strings.NewReader(stdin)
		command.WaitDelay = time.Second
		out, complaint := &limited{most: mostBytes, full: cancel}, &limited{most: 4 << 10}
		command.Stdout, command.Stderr = out, complaint
		err := command.Run()
		switch {
		case out.over:
			return nil, "", fmt.Errorf("the answer is longer than %d kB: ask for less (LIMIT in a query, top elsewhere)", mostBytes>>10)
		case errors.Is(ctx.Err(), context.DeadlineExceeded):
			return nil, "", fmt.Errorf("no answer within %s: ask for less", longest)
		}
		return out.Bytes(), complaint.String(), err
	}
}

// limited keeps what is written, up to most bytes, and calls full when there is more.
type limited struct {
	bytes.Buffer
	most int
	over bool
	full func()
}

func (l *limited) Write(p []byte) (int, error) {
	if l.over = l.over || l.Len()+len(p) > l.most; !l.over {
		return l.Buffer.Write(p)
	}
	if l.full != nil {
		l.full()
	}
	return len(p), nil
}
