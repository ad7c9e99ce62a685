package unpacking

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"testing"
)

type zeros struct{ left int64 }

func (z *zeros) Read(b []byte) (int, error) {
	if z.left <= 0 {
		return 0, io.EOF
	}
	n := min(int64(len(b)), z.left)
	clear(b[:n])
	z.left -= n
	return int(n), nil
}

// What unpacks to a thousand times its size is refused, beyond the bytes that are free.
func TestAFileThatUnpacksToFarMoreIsRefused(t *testing.T) {
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	if _, err := io.Copy(z, &zeros{1 << 20}); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	c, refused := Count(&packed), errors.New("refused")
	in, err := gzip.NewReader(c)
	if err != nil {
		t.Fatal(err)
	}
	if n, err := io.Copy(io.Discard, Bound(in, c, 1<<20, refused)); err != nil || n != 1<<20 {
		t.Errorf("a small one: %d bytes, %v", n, err)
	}
	// Of a megabyte four hundred may come.
	large := Bound(&zeros{1 << 40}, Size(1<<20), 1<<10, refused)
	if n, err := io.Copy(io.Discard, large); !errors.Is(err, refused) || n < MostTimes<<20 || n > MostTimes<<20+1<<20 {
		t.Errorf("a large one: %d bytes, %v", n, err)
	}
}
