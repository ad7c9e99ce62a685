// Package unpacking bounds what a packed file unpacks to: a small file can hold one byte a billion times.
package unpacking

import (
	"fmt"
	"io"
)

// MostTimes its packed size is what a file may unpack to, beyond the bytes that are free. Texts of times and numbers,
// as traces and snapshots are, become a tenth to a hundredth; a thousandth is one byte again and again.
const MostTimes = 400

// Counted counts what is read of a file.
type Counted struct {
	in   io.Reader
	read int64
}

// Count counts what is read of in.
func Count(in io.Reader) *Counted { return &Counted{in: in} }

// Size is a file of which so many bytes count as read: all of it, where its parts are read in any order.
func Size(bytes int64) *Counted { return &Counted{read: bytes} }

func (c *Counted) Read(b []byte) (int, error) {
	n, err := c.in.Read(b)
	c.read += int64(n)
	return n, err
}

// Bytes is how many have been read.
func (c *Counted) Bytes() int64 { return c.read }

// Bounded reads what a packed file unpacks to.
type Bounded struct {
	in     io.Reader
	packed *Counted
	free   int64
	read   int64
	is     error
}

// Bound reads in, which is unpacked from packed. Beyond free bytes and MostTimes of what was read of packed it ends with
// an error that wraps is.
func Bound(in io.Reader, packed *Counted, free int64, is error) *Bounded {
	return &Bounded{in: in, packed: packed, free: free, is: is}
}

func (u *Bounded) Read(b []byte) (int, error) {
	n, err := u.in.Read(b)
	if u.read += int64(n); u.read > u.free && u.read > MostTimes*u.packed.read {
		return n, fmt.Errorf("%w: it unpacks to more than %d times its size", u.is, MostTimes)
	}
	return n, err
}
