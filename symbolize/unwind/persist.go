package unwind

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/ebpfprof/ebpfprof/internal/directory"
	"github.com/ebpfprof/ebpfprof/symbolize/elf"
)

// ErrDamaged: a cached table that is not what was written, or of another version.
var ErrDamaged = errors.New("a damaged unwind table in the cache")

// Key names a table by what it is made of: no other file can have the same.
type Key string

// KeyOf returns the key of a file's table: of its headers, its frame descriptions
// and, since what they leave out is inferred, its code. Not ok where no table may
// be kept (elf.Hold.Key).
func KeyOf(h *elf.Hold, e *elf.File) (key Key, ok bool) {
	contents, address, _ := e.UnwindFrames()
	parts := [][]byte{contents}
	for _, s := range e.CodeSegments() {
		parts = append(parts, e.CodeAt(s.Address, s.Size))
	}
	name, ok := h.Key(parts...)
	if !ok {
		return "", false
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "%d %x %s", e.Machine(), address, name))
	return Key(hex.EncodeToString(sum[:16])), true
}

// Cache keeps compiled tables in a directory, one file each, which are mapped
// and not read. The zero Cache keeps nothing.
type Cache struct {
	Directory string
	Infer     Infer // for Compile; tables with and without it are kept apart
}

// inferredKey is raised when what is inferred changes.
const inferredKey = "-inferred3"

// entryKey sets the dynamic linker's tables that know its entry apart from those before.
const entryKey = "-entry"

// vforkKey sets the tables of the library that has vfork apart from those before it had a rule.
const vforkKey = "-vfork"

// Table returns the file's table, from the cache or, compiled now, into it. A
// file that somebody may be writing is compiled each time. That the cache can not
// be written is no error. The errors are Compile's.
func (c Cache) Table(e *elf.File) (*Table, error) {
	if _, _, ok := e.UnwindFrames(); !ok {
		return nil, ErrNoFrames
	}
	if c.Directory == "" {
		return Compile(e, c.Infer)
	}
	hold, held := e.Hold()
	if !held {
		return Compile(e, c.Infer)
	}
	var key Key
	var t *Table
	err := elf.Guard(func() {
		if key, held = KeyOf(hold, e); c.Infer != nil {
			key += inferredKey
			if isLinker(e) {
				key += entryKey
			}
			if e.Exports("vfork") {
				key += vforkKey
			}
		}
	})
	if err == nil && held {
		if t, err = c.Load(key); err == nil {
			hold.Release()
			return t, nil
		}
	}
	if fault := elf.Guard(func() { t, err = Compile(e, c.Infer) }); fault != nil {
		err = fault
	}
	if unchanged := hold.Release(); err == nil && held && unchanged {
		_ = c.Store(key, t)
	}
	return t, err
}

// The file: the header, padded to a leaf, then the leaves, then the rules.
type header struct {
	magic    [16]byte
	digest   [sha256.Size]byte // of all that follows
	base     uint64
	pages    uint64
	rows     uint64
	rules    uint64
	leaves   uint64
	skipped  uint64
	machine  uint32
	pageBits uint32

	sequences uint64
}

// Its number is that of the format: raised when rows, pages or rules change.
var magic = [16]byte([]byte("ebpfprof-unwind2"))

const digested = int(unsafe.Offsetof(header{}.base))

const (
	tableSuffix     = ".unwind"
	temporaryPrefix = ".unwind-"
)

func fileName(key Key) string { return string(key) + tableSuffix }

// Store writes a table under a hidden name, then gives it its own.
func (c Cache) Store(key Key, t *Table) error {
	if c.Directory == "" {
		return nil
	}
	dir, err := directory.MakeCache(c.Directory)
	if err != nil {
		return fmt.Errorf("making the cache of unwind tables: %w", err)
	}
	defer dir.Close()
	if err := dir.Write(fileName(key), temporaryPrefix, encode(t)); err != nil {
		return fmt.Errorf("caching an unwind table: %w", err)
	}
	return nil
}

func encode(t *Table) []byte {
	data := make([]byte, LeafBytes+len(t.Leaves)+len(t.Rules)*ruleBytes)
	h := (*header)(unsafe.Pointer(&data[0]))
	*h = header{
		magic: magic, base: t.Base, pages: uint64(t.Pages), rows: uint64(t.Rows), rules: uint64(len(t.Rules)),
		leaves: uint64(len(t.Leaves) / LeafBytes), skipped: uint64(t.Skipped), machine: uint32(t.Machine), pageBits: uint32(t.PageBits),
		sequences: uint64(t.Sequences),
	}
	copy(data[LeafBytes:], t.Leaves)
	copy(data[LeafBytes+len(t.Leaves):], unsafe.Slice((*byte)(unsafe.Pointer(&t.Rules[0])), len(t.Rules)*ruleBytes))
	h.digest = sha256.Sum256(data[digested:])
	return data
}

// Load maps a cached table. It fails with an error that is os.ErrNotExist, with
// ErrDamaged, or with directory.ErrNotOurs where others could have written it.
func (c Cache) Load(key Key) (*Table, error) {
	if c.Directory == "" {
		return nil, os.ErrNotExist
	}
	dir, err := directory.OpenCache(c.Directory)
	if err != nil {
		return nil, fmt.Errorf("opening the cache of unwind tables: %w", err)
	}
	defer dir.Close()
	file, err := dir.Open(fileName(key))
	if err != nil {
		return nil, fmt.Errorf("opening a cached unwind table: %w", err)
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return nil, fmt.Errorf("opening a cached unwind table: %w", err)
	}
	if info.Size() < LeafBytes || info.Size() > (maxLeaves+1)*LeafBytes+maxRules*ruleBytes {
		return nil, ErrDamaged
	}
	data, err := unix.Mmap(int(file.Fd()), 0, int(info.Size()), unix.PROT_READ, unix.MAP_PRIVATE|unix.MAP_POPULATE)
	if err != nil {
		return nil, fmt.Errorf("mapping a cached unwind table: %w", err)
	}
	var t *Table
	if fault := elf.Guard(func() { t, err = decode(data) }); fault != nil {
		err = ErrDamaged
	}
	if err != nil {
		_ = unix.Munmap(data)
		return nil, err
	}
	t.release = func() error { return unix.Munmap(data) }
	noteUse(file, info)
	return t, nil
}

// decode checks a table and leaves its leaves where they are. The digest guards
// against a disk's errors; what an enemy could write is checked as well, since
// it would be searched without another look.
func decode(data []byte) (*Table, error) {
	if len(data) < LeafBytes {
		return nil, ErrDamaged
	}
	h := (*header)(unsafe.Pointer(&data[0]))
	if h.magic != magic || h.leaves == 0 || h.leaves > maxLeaves || h.rules == 0 || h.rules > maxRules || h.pages > maxPages ||
		h.sequences > maxSequences ||
		uint64(len(data)) != LeafBytes+h.leaves*LeafBytes+h.rules*ruleBytes ||
		h.digest != sha256.Sum256(data[digested:]) {
		return nil, ErrDamaged
	}
	body := data[LeafBytes:]
	t := &Table{
		Machine: elf.Machine(h.machine), Base: h.base, PageBits: uint8(h.pageBits), Pages: int(h.pages),
		Rows: int(h.rows), Sequences: int(h.sequences), Rules: make([]Rule, h.rules), Leaves: body[:h.leaves*LeafBytes], Skipped: int(h.skipped),
	}
	raw := unsafe.Slice((*byte)(unsafe.Pointer(&t.Rules[0])), len(t.Rules)*ruleBytes)
	copy(raw, body[h.leaves*LeafBytes:])
	if !t.sound() || bytes.Count(raw[:ruleBytes], []byte{0}) != ruleBytes {
		return nil, ErrDamaged
	}
	return t, nil
}

// sound reports whether every page, row and sequence of the image leads somewhere.
func (t *Table) sound() bool {
	if uint(t.PageBits) < minPageBits || uint(t.PageBits) > maxPageBits+pcShift(t.Machine) ||
		t.Pages <= 0 || t.IndexLeaves() > t.SequenceLeaf() {
		return false
	}
	for number := range t.Pages {
		page := t.Leaves[number*8:]
		leaf, first, count := uint64(le.Uint32(page)), int(le.Uint16(page[4:])), int(le.Uint16(page[6:]))
		if count == 0 {
			continue
		}
		if first+count > leafRows || leaf < uint64(t.IndexLeaves()) || leaf >= uint64(t.SequenceLeaf()) {
			return false
		}
		if !t.soundRows(t.Leaves[leaf*LeafBytes+uint64(first)*4:], count) {
			return false
		}
	}
	for number := range t.Sequences {
		if !t.soundSequence(t.sequence(uint16(number))) {
			return false
		}
	}
	return true
}

func (t *Table) soundRows(rows []byte, count int) bool {
	if le.Uint16(rows) > rowReach>>pcShift(t.Machine) {
		return false
	}
	for i := range count {
		code := int(le.Uint16(rows[i*4+2:]))
		if code&oneRule != 0 && code&^oneRule >= len(t.Rules) || code&oneRule == 0 && code >= t.Sequences {
			return false
		}
	}
	return true
}

func (t *Table) soundSequence(cells []byte) bool {
	if le.Uint16(cells) != 0 {
		return false
	}
	for i := range sequenceCells {
		if int(le.Uint16(cells[i*4+2:])) >= len(t.Rules) {
			return false
		}
	}
	return true
}
