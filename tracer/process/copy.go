package process

import (
	"encoding/binary"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// A file that a user may serve is read once, by a reader, into memory of ours: what names
// functions and unwinds stacks, not the code for GPUs nor debug information.

const (
	// maxCopied is what is copied of one file; libtorch_cpu has 260 MB of code and tables.
	maxCopied = 320 << 20
	// largestOdd is the largest other section that is copied: tables of constants are smaller, code for
	// GPUs larger.
	largestOdd  = 32 << 20
	maxSections = 1 << 14
	pieceCopied = 1 << 20
)

// extent is a part of a file.
type fileExtent struct{ at, size uint64 }

// copyELF copies what is read of an ELF file. What is left out is a hole in the copy.
func copyELF(file *os.File, progress func()) (copied int, bytes int64, err error) {
	size, err := file.Seek(0, 2)
	if err != nil {
		return -1, 0, err
	}
	copied, err = unix.MemfdCreate("ebpfprof-copy", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		return -1, 0, err
	}
	defer func() {
		if err != nil {
			unix.Close(copied)
		}
	}()
	if err := unix.Ftruncate(copied, size); err != nil {
		return -1, 0, err
	}
	piece, sinceSaid := make([]byte, pieceCopied), 0
	for _, part := range partsOf(file, uint64(size)) {
		for at, end := part.at, part.at+part.size; at < end; {
			n, err := readWhole(int(file.Fd()), piece[:min(end-at, pieceCopied)], int64(at))
			if err != nil {
				return -1, 0, err
			}
			if n == 0 {
				break
			}
			if bytes += int64(n); bytes > maxCopied {
				return -1, 0, syscall.EFBIG
			}
			if _, err := unix.Pwrite(copied, piece[:n], int64(at)); err != nil {
				return -1, 0, err
			}
			at += uint64(n)
			if sinceSaid += n; sinceSaid >= 8<<20 {
				sinceSaid = 0
				progress()
			}
		}
	}
	_, err = unix.FcntlInt(uintptr(copied), unix.F_ADD_SEALS, unix.F_SEAL_SHRINK|unix.F_SEAL_GROW|unix.F_SEAL_WRITE|unix.F_SEAL_SEAL)
	return copied, bytes, err
}

// partsOf lists the parts of an ELF file that are copied: all of it, where it has no sections.
func partsOf(file *os.File, size uint64) []fileExtent {
	all := []fileExtent{{0, size}}
	const headerBytes, sectionBytes = 64, 64
	header := make([]byte, headerBytes)
	if n, _ := file.ReadAt(header, 0); n < headerBytes || string(header[:4]) != "\x7fELF" || header[4] != 2 || header[5] != 1 {
		return []fileExtent{{0, min(size, headerBytes)}} // it is refused by its header
	}
	le := binary.LittleEndian
	programs, programCount := le.Uint64(header[32:]), uint64(le.Uint16(header[56:]))
	sections, count := le.Uint64(header[40:]), uint64(le.Uint16(header[60:]))
	if sections == 0 || count == 0 || count > maxSections || sections > size || size-sections < count*sectionBytes || programs > size {
		return all
	}
	table := make([]byte, count*sectionBytes)
	if n, _ := file.ReadAt(table, int64(sections)); n < len(table) {
		return all
	}
	parts := []fileExtent{{0, min(size, headerBytes)}, {programs, min(size-programs, programCount*56)}, {sections, uint64(len(table))}}
	for s := table; len(s) >= sectionBytes; s = s[sectionBytes:] {
		kind, flags := le.Uint32(s[4:]), le.Uint64(s[8:])
		at, length := le.Uint64(s[24:]), le.Uint64(s[32:])
		if at > size || kind == 8 { // SHT_NOBITS
			continue
		}
		length = min(length, size-at)
		const progBits, allocated, code = 1, 2, 4
		switch {
		case kind != progBits && kind <= 11 || kind == 0x6ffffff6: // tables: symbols, names, relocations, notes; GNU's hash
		case flags&code != 0, flags&allocated != 0 && length <= largestOdd, kind == 0x70000001: // SHT_X86_64_UNWIND
		case flags&allocated != 0 && holdsFrames(s, table, file, le.Uint16(header[62:])):
		case kind == progBits && flags&allocated == 0 && length <= 4096: // a link to debug information
		default:
			continue
		}
		parts = append(parts, fileExtent{at, length})
	}
	return parts
}

// holdsFrames reports a section that is called .eh_frame.
func holdsFrames(section, table []byte, file *os.File, names uint16) bool {
	le := binary.LittleEndian
	if int(names)*64+64 > len(table) {
		return false
	}
	at := le.Uint64(table[int(names)*64+24:]) + uint64(le.Uint32(section))
	name := make([]byte, 10)
	n, _ := file.ReadAt(name, int64(at))
	return n == len(name) && string(name[:9]) == ".eh_frame"
}
