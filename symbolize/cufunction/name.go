package cufunction

const (
	// maxName is longer than any kernel's mangled name.
	maxName = 4096
	// scanned is how much of a structure is looked at for the pointer, bytes.
	scanned = 0x400
	// usual is where the pointer to the name lies in drivers of 2021 to 2025, by
	// code that reads it (section 2.3 of the project's notes on peers; not seen on
	// hardware here).
	usual = 8

	pageBytes = 4096
)

// Memory reads a process's memory: all of b, or an error.
type Memory func(address uint64, b []byte) error

// isName reports whether b is a symbol: what nvcc, NVRTC and Triton make.
func isName(b []byte) bool {
	if len(b) == 0 || len(b) > maxName || b[0] >= '0' && b[0] <= '9' || b[0] == '.' {
		return false
	}
	for _, c := range b {
		letter := c|0x20 >= 'a' && c|0x20 <= 'z'
		if !letter && !(c >= '0' && c <= '9') && c != '_' && c != '$' && c != '.' {
			return false
		}
	}
	return true
}

// name reads the NUL-terminated symbol at an address; "" where there is none.
func (m Memory) name(address uint64) string {
	var b []byte
	for len(b) <= maxName {
		// Not across a page at once: the next one may not be there.
		chunk := make([]byte, min(256, pageBytes-address%pageBytes))
		if m(address, chunk) != nil {
			return ""
		}
		for i, c := range chunk {
			if c == 0 {
				if b = append(b, chunk[:i]...); isName(b) {
					return string(b)
				}
				return ""
			}
		}
		b, address = append(b, chunk...), address+uint64(len(chunk))
	}
	return ""
}

// words reads the first words of a structure, as many as there are.
func (m Memory) words(handle uint64) []byte {
	b := make([]byte, scanned)
	if m(handle, b) == nil {
		return b
	}
	b = b[:min(scanned, pageBytes-handle%pageBytes)]
	if m(handle, b) == nil {
		return b
	}
	return nil
}
