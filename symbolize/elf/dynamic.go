package elf

// dynamic is what PT_DYNAMIC says. The loader itself depends on it, so it is
// right in files whose section headers were stripped.
type dynamic struct {
	needed, named               bool
	soname                      uint64
	strings, stringsSize        uint64
	symbols                     uint64
	sysvHash, gnuHash           uint64
	relocations, relocationSize uint64
	pltRelocations, pltSize     uint64
}

func (e *File) parseDynamic(table []byte) {
	d := &e.dynamic
	fields := map[uint64]*uint64{
		2: &d.pltSize, 4: &d.sysvHash, 5: &d.strings, 6: &d.symbols, 7: &d.relocations,
		8: &d.relocationSize, 10: &d.stringsSize, 14: &d.soname, 23: &d.pltRelocations,
		0x6ffffef5: &d.gnuHash,
	}
	for ; len(table) >= 16; table = table[16:] {
		tag, value := le.Uint64(table), le.Uint64(table[8:])
		switch tag {
		case 0:
			return
		case 1:
			d.needed = true
		case 14:
			d.named = true
		}
		if field := fields[tag]; field != nil {
			*field = value
		}
	}
}

// SoName is the library's own name (DT_SONAME), "" where it has none.
func (e *File) SoName() string {
	if !e.dynamic.named {
		return ""
	}
	return e.dynsym.name(uint32(e.dynamic.soname))
}

// dynamicSymbolCount is the number of dynamic symbols, which only the hash
// tables tell in a file without section headers.
func (e *File) dynamicSymbolCount() uint64 {
	if h := e.CodeAt(e.dynamic.sysvHash, 8); e.dynamic.sysvHash != 0 && len(h) == 8 {
		return uint64(le.Uint32(h[4:]))
	}
	if e.dynamic.gnuHash == 0 {
		return 0
	}
	hash, ok := parseGNUHash(e.CodeAt(e.dynamic.gnuHash, maxHashBytes))
	if !ok {
		return 0
	}
	return hash.symbolCount()
}

// gnuHash is DT_GNU_HASH.
type gnuHash struct {
	first   uint32 // index of the first hashed symbol
	shift   uint32
	bloom   []byte
	buckets []byte
	chains  []byte
}

func parseGNUHash(b []byte) (gnuHash, bool) {
	if len(b) < 16 {
		return gnuHash{}, false
	}
	buckets, first := uint64(le.Uint32(b)), le.Uint32(b[4:])
	bloom, shift := uint64(le.Uint32(b[8:])), le.Uint32(b[12:])
	b = b[16:]
	if bloom == 0 || buckets == 0 || bloom*8+buckets*4 > uint64(len(b)) {
		return gnuHash{}, false
	}
	return gnuHash{
		first: first, shift: shift, bloom: b[:bloom*8],
		buckets: b[bloom*8 : bloom*8+buckets*4], chains: b[bloom*8+buckets*4:],
	}, true
}

// symbolCount follows the chain of the highest bucket to its end.
func (h gnuHash) symbolCount() uint64 {
	last := uint64(0)
	for b := h.buckets; len(b) >= 4; b = b[4:] {
		last = max(last, uint64(le.Uint32(b)))
	}
	if last < uint64(h.first) {
		return uint64(h.first)
	}
	for i := (last - uint64(h.first)) * 4; i+4 <= uint64(len(h.chains)); i += 4 {
		last++
		if le.Uint32(h.chains[i:])&1 != 0 {
			break
		}
	}
	return last
}

// lookup calls same with the index of every symbol whose hash is name's, until
// it returns true.
func (h gnuHash) lookup(name string, same func(index uint64) bool) {
	hash := uint32(5381)
	for i := range len(name) {
		hash = hash*33 + uint32(name[i])
	}
	words := uint32(len(h.bloom) / 8)
	word := le.Uint64(h.bloom[hash/64%words*8:])
	if mask := uint64(1)<<(hash%64) | uint64(1)<<(hash>>(h.shift%32)%64); word&mask != mask {
		return
	}
	index := le.Uint32(h.buckets[hash%uint32(len(h.buckets)/4)*4:])
	if index < h.first {
		return
	}
	for i := uint64(index-h.first) * 4; i+4 <= uint64(len(h.chains)); i += 4 {
		chain := le.Uint32(h.chains[i:])
		if chain|1 == hash|1 && same(uint64(h.first)+i/4) {
			return
		}
		if chain&1 != 0 {
			return
		}
	}
}
