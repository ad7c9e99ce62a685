package recorder

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/ebpfprof/ebpfprof/tracer/process"
)

func looks(whole bool, looks ...[]process.Found) *search {
	return &search{asked: "--command train.py", whole: whole, find: func(process.Wanted) ([]process.Found, error) {
		found := looks[0]
		looks = looks[min(1, len(looks)-1):]
		return found, nil
	}}
}

func TestOneMatchIsRecordedAndSeveralAreListed(t *testing.T) {
	a, b := process.Found{PID: 7, Command: "python train.py"}, process.Found{PID: 9, Command: "python train.py --other\x1b[31m"}
	if pids, err := looks(false, []process.Found{a}).once(); err != nil || !slices.Equal(pids, []int{7}) {
		t.Errorf("%v, %v", pids, err)
	}
	_, err := looks(false, []process.Found{a, b}).once()
	if err == nil || !strings.Contains(err.Error(), "       7  python train.py\n       9  python train.py --other") ||
		strings.Contains(err.Error(), "\x1b") {
		t.Errorf("two processes: %v", err)
	}
	if _, err := looks(false, nil).once(); err == nil || !strings.Contains(err.Error(), "--wait waits for one") {
		t.Errorf("no process: %v", err)
	}
}

func TestAContainerIsRecordedAsAWhole(t *testing.T) {
	in := func(pid int, group string) process.Found {
		return process.Found{PID: pid, Command: "python", Container: process.Container{ID: "abc", Group: group}}
	}
	if pids, err := looks(true, []process.Found{in(7, "/a/abc"), in(9, "/a/abc")}).once(); err != nil || !slices.Equal(pids, []int{7, 9}) {
		t.Errorf("%v, %v", pids, err)
	}
	// A user may give a group of its own the name of somebody's container.
	_, err := looks(true, []process.Found{in(7, "/a/abc"), in(9, "/user/abc")}).once()
	if err == nil || !strings.Contains(err.Error(), "in /user/abc") {
		t.Errorf("two containers of one id: %v", err)
	}
}

func TestWaitingEndsWithTheProcessOrASignal(t *testing.T) {
	a := process.Found{PID: 7, Command: "python train.py"}
	if pids, err := looks(false, nil, nil, []process.Found{a}).wait(t.Context(), true); err != nil || !slices.Equal(pids, []int{7}) {
		t.Errorf("%v, %v", pids, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := looks(false, nil).wait(ctx, true); !errors.Is(err, ErrNothingCaptured) {
		t.Errorf("a signal: %v", err)
	}
}
