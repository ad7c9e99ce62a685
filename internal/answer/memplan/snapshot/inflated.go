package snapshot

import (
	"fmt"
	"io"

	"github.com/ebpfprof/ebpfprof/internal/exchange/pickle"
)

// inflated refuses what unpacks to far more than any snapshot: texts with few numbers become a
// tenth to a hundredth, a thousandth is one byte again and again.
type inflated struct {
	in     io.Reader
	packed *counted
	read   int64
}

const (
	mostInflated  = 8 << 20 // whatever it was packed to
	mostTimesSize = 400
)

func (i *inflated) Read(b []byte) (int, error) {
	n, err := i.in.Read(b)
	if i.read += int64(n); i.read > mostInflated && i.read > mostTimesSize*i.packed.read {
		return n, fmt.Errorf("%w: it unpacks to more than %d times its size", pickle.ErrTooLarge, mostTimesSize)
	}
	return n, err
}

// counted counts what was read.
type counted struct {
	in   io.Reader
	read int64
}

func (c *counted) Read(b []byte) (int, error) {
	n, err := c.in.Read(b)
	c.read += int64(n)
	return n, err
}
