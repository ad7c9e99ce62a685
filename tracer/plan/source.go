package plan

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/ebpfprof/ebpfprof/symbolize/elf"
	"github.com/ebpfprof/ebpfprof/tracer/process"
)

// Source is a library's file, opened once. What is parsed, planned and attached
// to is reached through its descriptor: a path, and what a process maps, may be
// another file the next time, and an inode's number is given out again when the
// ELF is gone. Not while a descriptor is open.
type Source struct {
	file  *process.Opened
	ELF   *elf.File
	users atomic.Int32 // that have to close it, beside the first
	// Unprobed is why no probe may go into the file, nil if they may: a user may serve it
	// (process.MountError).
	Unprobed error
}

// OpenSource opens the file of a library. Errors as process.Library.Open's and
// elf.New's.
func OpenSource(l *process.Library) (*Source, error) {
	file, err := l.OpenFile()
	if err != nil {
		return nil, err
	}
	e, err := file.ELF()
	if err != nil {
		file.Close()
		return nil, fmt.Errorf("%s: %w", l.Path, err)
	}
	return &Source{file: file, ELF: e, Unprobed: file.Unprobed}, nil
}

// Path leads to the file for as long as the source is open.
func (s *Source) Path() string { return s.file.Path() }

// Share gives it one more user, who has to close it too.
func (s *Source) Share() *Source {
	s.users.Add(1)
	return s
}

// Close closes it, if nobody else uses it any more.
func (s *Source) Close() {
	if s.users.Add(-1) >= 0 {
		return
	}
	s.ELF.Close()
	s.file.Close()
}

// codeAt reads what ELF.CodeAt would point at, from the descriptor as it is now;
// nil where it can not be read.
func (s *Source) codeAt(address, size uint64) []byte {
	offset, ok := s.ELF.FileOffset(address)
	if !ok {
		return nil
	}
	code := make([]byte, s.ELF.CodeSize(address, size))
	if n, err := s.file.ReadAt(code, int64(offset)); err != nil || n < len(code) {
		return nil
	}
	return code
}

// ErrChanged: the file is not any more what was planned.
var ErrChanged = errors.New("the file was changed after its probes were planned")

// Verify compares the code of probes with that which they were planned by. The
// kernel would put a breakpoint wherever it is told to.
func (s *Source) Verify(probes []Probe, which []int) error {
	for _, i := range which {
		p := &probes[i]
		if sum, ok := p.sum(s.codeAt); !ok || sum != p.code || slices.ContainsFunc(p.siteOffsets(),
			func(at uint64) bool { return s.InHeader(p.Address + at) }) {
			return fmt.Errorf("%s: %w", p.Symbol, ErrChanged)
		}
	}
	return nil
}

// InHeader reports a site at the very beginning of a file, where there is no code:
// the library that attaches takes the offset 0 for none.
func (s *Source) InHeader(address uint64) bool {
	offset, ok := s.ELF.FileOffset(address)
	return !ok || offset < 4
}

// codeSum is a digest of the code that a probe's sites were chosen by: the
// function's, and the instructions at those of its sites that lie elsewhere.
type codeSum [sha256.Size]byte

// instructionBytes is at least the length of an instruction.
const instructionBytes = 16

// maxFunctionBytes is the most of a function that is looked at: many times the
// largest that is probed. A symbol can claim any size.
const maxFunctionBytes = 256 << 10

// sum reads the code of a probe; not ok where it is not all there.
func (p *Probe) sum(codeAt func(address, size uint64) []byte) (sum codeSum, ok bool) {
	hash := sha256.New()
	add := func(address, size uint64) bool {
		code := codeAt(address, size)
		hash.Write(binary.LittleEndian.AppendUint64(nil, uint64(len(code))))
		hash.Write(code)
		return len(code) > 0 || size == 0
	}
	ok = add(p.Address, p.size)
	for _, offset := range p.siteOffsets() {
		if offset > p.size || p.size-offset < instructionBytes { // also of parts that lie before it
			ok = add(p.Address+offset, instructionBytes) && ok
		}
	}
	return codeSum(hash.Sum(nil)), ok
}

// siteOffsets lists the probe's sites, from the function's address on.
func (p *Probe) siteOffsets() []uint64 {
	if p.EntryErr != nil {
		return nil
	}
	offsets := make([]uint64, 0, len(p.Exits)+1)
	offsets = append(offsets, p.Entry.Offset)
	for _, e := range p.Exits {
		offsets = append(offsets, e.Offset)
	}
	return offsets
}
