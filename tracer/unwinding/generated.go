package unwinding

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/maphash"
	"maps"
	"math"
	"os"
	"runtime"
	"slices"
	"time"
	"unsafe"

	"github.com/ebpfprof/ebpfprof/symbolize/elf"
	"github.com/ebpfprof/ebpfprof/symbolize/unwind"
	"github.com/ebpfprof/ebpfprof/tracer/process"
)

// Code that a process generates (oneDNN's kernels, libffi's closures, a
// just-in-time compiler's functions) lies in memory that no file describes, and
// most of it keeps no frame pointer. Its rules are inferred from its
// instructions, as those of undescribed code in files are, and made a table of:
// a file of its own for each process. What a walk finds by them is marked as
// inferred, and must follow a call.

// generated is what is known of one process's generated code.
type generated struct {
	file    *file // nil while nothing is understood
	regions []region
	pieces  map[piece][]unwind.InferredRule
	skipped int // bytes beyond maxGenerated, or beyond what may be kept of the process
	kept    int // bytes
}

// region is one of its mappings, and where in its table's file that is.
type region struct{ start, end, address uint64 }

// piece is a run of pages that hold code; rules are from its start on.
type piece struct {
	address uint64
	size    int
	hash    uint64
}

// maxGenerated bounds the code of a process that is read, and with it the memory and the
// time that this takes: some 8 MB a second. maxPages bounds the pages of which the kernel is
// asked whether they hold any.
const (
	maxGenerated = 32 << 20
	maxPages     = 1 << 22
)

// maxPiece is the most code of which rules are inferred at once: what is kept of a process is
// counted in between.
const maxPiece = 1 << 20

var pieceSeed = maphash.MakeSeed()

// at is where the table's file has the code of a mapping.
func (g *generated) at(m mapping) (uint64, bool) {
	if g == nil || g.file == nil {
		return 0, false
	}
	for _, r := range g.regions {
		if m.start >= r.start && m.end <= r.end {
			return r.address + m.start - r.start, true
		}
	}
	return 0, false
}

// understand looks at what lies in the regions now. Pieces that have not changed
// are not looked at again. changed says whether any has. room is how many bytes may be kept
// of the process.
func (g *generated) understand(pid int, regions []region, room int) (next *generated, inferred []unwind.InferredRule, changed bool,
	err error) {
	code, err := openCode(pid)
	if err != nil {
		return nil, nil, false, err
	}
	defer code.close()
	next = &generated{regions: regions, pieces: map[piece][]unwind.InferredRule{}}
	for _, r := range regions {
		for _, p := range code.pieces(r.start, r.end) {
			id := piece{p.address, len(p.contents), maphash.Bytes(pieceSeed, p.contents)}
			rules, known := g.known(id)
			if !known {
				changed = true
				rules = Infer(p.contents, p.address)
			}
			bytes := pieceBytes + ruleBytes*cap(rules)
			if next.kept+bytes > room {
				code.skipped += len(p.contents)
				continue
			}
			next.kept += bytes
			next.pieces[id] = rules
			for _, rule := range rules {
				rule.Address += r.address - r.start
				inferred = append(inferred, rule)
			}
			end := p.address + uint64(len(p.contents)) + r.address - r.start
			inferred = append(inferred, unwind.InferredRule{Address: end})
		}
	}
	next.skipped = code.skipped
	gone := g != nil && !maps.EqualFunc(g.pieces, next.pieces, func(_, _ []unwind.InferredRule) bool { return true })
	moved := g != nil && !slices.Equal(g.regions, regions)
	return next, inferred, changed || gone || moved, nil
}

// What a piece and a rule take while they are kept.
const (
	pieceBytes = 128
	ruleBytes  = int(unsafe.Sizeof(unwind.InferredRule{}))
)

func (g *generated) known(id piece) ([]unwind.InferredRule, bool) {
	if g == nil {
		return nil, false
	}
	rules, ok := g.pieces[id]
	return rules, ok
}

// codeReader reads the executable memory of a process.
type codeReader struct {
	memory, pagemap *process.Memory
	left            int // bytes of code that are read yet
	pagesLeft       int // pages that are looked at yet
	skipped         int // bytes that were not read
}

func openCode(pid int) (*codeReader, error) {
	memory, err := process.OpenMemory(pid)
	if err != nil {
		return nil, fmt.Errorf("reading generated code: %w", err)
	}
	pagemap, err := process.OpenPages(pid)
	if err != nil {
		memory.Close()
		return nil, fmt.Errorf("reading generated code: %w", err)
	}
	return &codeReader{memory: memory, pagemap: pagemap, left: maxGenerated, pagesLeft: maxPages}, nil
}

func (c *codeReader) close() {
	c.memory.Close()
	c.pagemap.Close()
}

type contents struct {
	address  uint64
	contents []byte
}

// pieces are the runs of pages between two addresses that hold something. Pages
// that are not in memory are left alone: to read them would bring them there. No more is read
// than maxGenerated of a process.
func (c *codeReader) pieces(start, end uint64) []contents {
	const presentBit = 63 // Documentation/admin-guide/mm/pagemap.rst
	page := uint64(os.Getpagesize())
	pages := min(int((end-start)/page), c.pagesLeft)
	c.pagesLeft -= pages
	flags := make([]byte, pages*8)
	if n, _ := c.pagemap.ReadAt(flags, int64(start/page*8)); n < len(flags) {
		flags = flags[:n&^7]
	}
	var found []contents
	buffer, empty := make([]byte, page), make([]byte, page)
	for i := 0; i < len(flags); i += 8 {
		address := start + uint64(i)/8*page
		if binary.LittleEndian.Uint64(flags[i:])>>presentBit == 0 {
			continue
		}
		if c.left < len(buffer) {
			c.skipped += len(buffer)
			continue
		}
		if _, err := c.memory.ReadAt(buffer, int64(address)); err != nil || bytes.Equal(buffer, empty) {
			continue
		}
		c.left -= len(buffer)
		if n := len(found); n > 0 && found[n-1].address+uint64(len(found[n-1].contents)) == address && len(found[n-1].contents) < maxPiece {
			found[n-1].contents = append(found[n-1].contents, buffer...)
		} else {
			found = append(found, contents{address, bytes.Clone(buffer)})
		}
	}
	return found
}

// generatedRegions lays the generated code of a process out one mapping after
// the other: tables cover the file addresses between their first row and their
// last, and the mappings lie gigabytes apart.
func (t *processTable) generatedRegions() []region {
	var regions []region
	next := uint64(pageBytes) // not 0, which is no address
	for _, m := range t.mappings {
		if m.file == anonymous && m.generated && m.end-m.start < 1<<30 {
			regions = append(regions, region{m.start, m.end, next})
			next += m.end - m.start
		}
	}
	return regions
}

// look asks the worker to look at a process's generated code. The lock is held.
func (u *Unwinder) look(pid int) {
	if t := u.processes[pid]; t != nil && runtime.GOARCH == "amd64" && (len(t.generatedRegions()) > 0 || t.generated != nil) {
		u.queue.looks[pid] = true
		u.queue.wake()
	}
}

// lookNext makes the table of the generated code of some process that is
// waiting for it; false: none is.
func (w worker) lookNext() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	for pid := range w.queue.looks {
		delete(w.queue.looks, pid)
		t := w.processes[pid]
		if t == nil || w.closed {
			continue
		}
		before, regions := t.generated, t.generatedRegions()
		room := w.roomFor(pid, before)
		w.queue.looking = true
		w.mu.Unlock()
		began := time.Now()
		var (
			now      *generated
			inferred []unwind.InferredRule
			changed  bool
			table    *unwind.Table
		)
		// The code is the job's: a mistake of ours about it costs its own table alone.
		err := elf.Guard(func() {
			var err error
			if now, inferred, changed, err = before.understand(pid, regions, room); err == nil && changed {
				// What can not be made a table of is left by frame pointer, as before.
				table, _ = unwind.CompileInferred(elf.MachineX86_64, inferred)
			}
		})
		changed = changed && err == nil && now != nil
		w.mu.Lock()
		w.queue.looking = false
		if t := w.processes[pid]; t != nil && !w.closed {
			t.looked = time.Since(began)
			if changed && t.generated == before {
				w.replaceGenerated(t, now, table)
			}
		}
		w.queue.idle.Broadcast()
		return true
	}
	return false
}

// replaceGenerated puts a new table of generated code, nil for none, in the
// place of the old one. Walks see one or the other.
func (w worker) replaceGenerated(t *processTable, now *generated, table *unwind.Table) {
	old := t.generated
	if table != nil {
		by := w.quotas.of(t.process.PID)
		f, err := w.room.generatedFile(table, by)
		w.room.refused.count(err, by)
		if err == nil {
			now.file = f
		}
	}
	t.generated = now
	w.charge(t.process.PID, now, old)
	if w.tables.putProcess(t.process.PID, t.entry()) != nil {
		t.generated = old
		w.charge(t.process.PID, old, now)
		w.room.drop(now)
		return
	}
	w.options.Changed()
	w.room.drop(old)
}

// charge counts what is kept of a process's generated code, in the place of what was.
func (u *Unwinder) charge(pid int, now, before *generated) {
	if u.options.Kept != nil {
		u.options.Kept.Of(pid).Add(now.bytes() - before.bytes())
	}
}

// roomFor is how many bytes may be kept of a process's generated code, if what is there goes.
func (u *Unwinder) roomFor(pid int, before *generated) int {
	if u.options.Kept == nil {
		return math.MaxInt
	}
	return u.options.Kept.Of(pid).Left() + before.bytes()
}

func (g *generated) bytes() int {
	if g == nil {
		return 0
	}
	return g.kept
}
