package cpython

import (
	"encoding/binary"
	"fmt"
	"io"
)

// memory is the job's, by address, as far as the budget goes.
type memory struct {
	io.ReaderAt
	budget *Budget
}

func (m memory) read(address uint64, b []byte) error {
	if !m.budget.take(len(b)) {
		return ErrBudget
	}
	if _, err := m.ReadAt(b, int64(address)); err != nil {
		return fmt.Errorf("reading %d bytes at %#x: %w", len(b), address, err)
	}
	return nil
}

func (m memory) word(address uint64) (uint64, error) {
	var b [8]byte
	err := m.read(address, b[:])
	return binary.LittleEndian.Uint64(b[:]), err
}
