package columnfile

import (
	"encoding/binary"
	"errors"
)

// walk goes over a value in thrift's compact protocol without decoding it. The
// decoder allocates a list by the length it claims, so that a few bytes of
// nonsense could ask for all memory; after the walk every claimed element is
// known to be there.
//
// https://github.com/apache/thrift/blob/master/doc/specs/thrift-compact-protocol.md
type walk struct{ rest []byte }

const (
	thriftTrue = iota + 1
	thriftFalse
	thriftByte
	thriftI16
	thriftI32
	thriftI64
	thriftDouble
	thriftBinary
	thriftList
	thriftSet
	thriftMap
	thriftStruct
)

// deepest is twice what a Parquet footer nests.
const deepest = 16

var errNonsense = errors.New("it is not in thrift's compact protocol")

func (w *walk) skip(n uint64) error {
	if n > uint64(len(w.rest)) {
		return errNonsense
	}
	w.rest = w.rest[n:]
	return nil
}

func (w *walk) byte() (byte, error) {
	if len(w.rest) == 0 {
		return 0, errNonsense
	}
	b := w.rest[0]
	w.rest = w.rest[1:]
	return b, nil
}

func (w *walk) uvarint() (uint64, error) {
	v, n := binary.Uvarint(w.rest)
	if n <= 0 {
		return 0, errNonsense
	}
	w.rest = w.rest[n:]
	return v, nil
}

func (w *walk) structure(depth int) error {
	for {
		header, err := w.byte()
		if err != nil {
			return err
		}
		if header == 0 {
			return nil
		}
		if header>>4 == 0 { // the field id is not a small step from the last
			if _, err := w.uvarint(); err != nil {
				return err
			}
		}
		if t := header & 0xf; t != thriftTrue && t != thriftFalse { // in a field, a bool is all header
			if err := w.value(t, depth+1); err != nil {
				return err
			}
		}
	}
}

func (w *walk) value(t byte, depth int) error {
	if depth > deepest {
		return errNonsense
	}
	switch t {
	case thriftTrue, thriftFalse, thriftByte:
		return w.skip(1)
	case thriftI16, thriftI32, thriftI64:
		_, err := w.uvarint()
		return err
	case thriftDouble:
		return w.skip(8)
	case thriftBinary:
		n, err := w.uvarint()
		if err != nil {
			return err
		}
		return w.skip(n)
	case thriftList, thriftSet:
		return w.list(depth)
	case thriftMap:
		return w.mapping(depth)
	case thriftStruct:
		return w.structure(depth)
	default:
		return errNonsense
	}
}

func (w *walk) list(depth int) error {
	header, err := w.byte()
	if err != nil {
		return err
	}
	n := uint64(header >> 4)
	if n == 15 {
		if n, err = w.uvarint(); err != nil {
			return err
		}
	}
	for range n {
		if err := w.value(header&0xf, depth+1); err != nil {
			return err
		}
	}
	return nil
}

func (w *walk) mapping(depth int) error {
	n, err := w.uvarint()
	if err != nil || n == 0 {
		return err
	}
	types, err := w.byte()
	if err != nil {
		return err
	}
	for range n {
		if err := w.value(types>>4, depth+1); err != nil {
			return err
		}
		if err := w.value(types&0xf, depth+1); err != nil {
			return err
		}
	}
	return nil
}
