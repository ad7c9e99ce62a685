package spool

import (
	"fmt"

	"github.com/ebpfprof/ebpfprof/internal/directory"
)

// own opens the spool, and makes it where there is none. It has to be ours alone: in
// another user's directory what root writes would go where that user's links lead.
func own(spool string) (*directory.Directory, error) {
	d, err := directory.MakeCache(spool)
	if err != nil {
		return nil, fmt.Errorf("the spool: %w; name a directory of root's with spool: in the agent's configuration", err)
	}
	return d, nil
}

// Check makes the spool, and returns an error if it is not ours alone.
func Check(spool string) error {
	d, err := own(spool)
	if err != nil {
		return err
	}
	return d.Close()
}
