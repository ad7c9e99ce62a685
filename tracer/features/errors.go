package features

import (
	"errors"
	"fmt"
	"os"
)

var (
	// ErrNotPermitted: the process lacks a capability; the message names it.
	ErrNotPermitted = errors.New("not permitted")
	// ErrUnsupported: the kernel lacks a feature without which nothing works;
	// the message names it, and the version that has it.
	ErrUnsupported = errors.New("not supported by this kernel")
)

// refusal is a sentence with a kind: ErrNotPermitted or ErrUnsupported.
type refusal struct {
	kind     error
	sentence string
}

func (r *refusal) Error() string { return r.sentence }
func (r *refusal) Unwrap() error { return r.kind }

func refuse(kind error, format string, args ...any) error {
	return &refusal{kind, fmt.Sprintf(format, args...)}
}

// NotPermitted marks the kernel's refusals as such.
func NotPermitted(err error) error {
	if errors.Is(err, os.ErrPermission) {
		return fmt.Errorf("%w: %w", ErrNotPermitted, err)
	}
	return err
}
