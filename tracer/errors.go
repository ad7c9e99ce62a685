package tracer

import (
	"errors"

	"github.com/ebpfprof/ebpfprof/tracer/features"
)

var (
	// ErrNotPermitted: the process lacks a capability; the message names it.
	ErrNotPermitted = features.ErrNotPermitted
	// ErrUnsupported: the kernel lacks a feature without which nothing works;
	// the message names it, and the version that has it.
	ErrUnsupported = features.ErrUnsupported
	// ErrUnknownGroup: --probe names a group that the catalog does not have.
	ErrUnknownGroup = errors.New("unknown probe group")
	// ErrNothingToProbe: --probe and --exclude together leave no group.
	ErrNothingToProbe = errors.New("nothing to probe")
	// ErrUnknownLevel: Options.Level is none of the levels.
	ErrUnknownLevel = errors.New("unknown level")
)
