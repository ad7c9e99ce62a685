package elf

import (
	"crypto/sha256"
	"encoding/hex"
)

// FileID identifies the file's contents: the GNU build id in hexadecimal, or,
// where the linker wrote none, "file-" and 16 bytes of the SHA-256 of the
// first and last 4 KiB and the size (8 bytes, little-endian).
func (e *File) FileID() string {
	if e.buildID != "" {
		return e.buildID
	}
	const part = 4096
	size := uint64(len(e.data))
	h := sha256.New()
	h.Write(e.slice(0, part))
	h.Write(e.slice(max(size, part)-part, part))
	h.Write(le.AppendUint64(nil, size))
	return "file-" + hex.EncodeToString(h.Sum(nil)[:16])
}
