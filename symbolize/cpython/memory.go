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

// pageBytes is the least size of a page: what lies behind its end may not be mapped.
const pageBytes = 4096

// ahead reads want bytes, and behind them as many as lie on the same page, most in all: each reading may be a request to
// another process, and the object may be freed meanwhile.
func (m memory) ahead(address uint64, want, most int) ([]byte, error) {
	b := make([]byte, max(want, min(most, pageBytes-int(address%pageBytes))))
	err := m.read(address, b)
	if err != nil && len(b) > want {
		b = b[:want]
		err = m.read(address, b)
	}
	return b, err
}

func (m memory) word(address uint64) (uint64, error) {
	var b [8]byte
	err := m.read(address, b[:])
	return binary.LittleEndian.Uint64(b[:]), err
}
