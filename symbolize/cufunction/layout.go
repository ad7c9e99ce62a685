package cufunction

import "encoding/binary"

// Reason says why a handle has no name.
type Reason uint8

const (
	// Named: it has one.
	Named Reason = iota
	// Null: the handle is 0, or no address a structure can have.
	Null
	// Unreadable: there is no memory at the handle.
	Unreadable
	// NoName: no word of the structure points to what could be a name.
	NoName
	// Ambiguous: several do, and no handle whose name is known has told them apart.
	Ambiguous
	// Contradicted: what was learnt of this libcuda does not hold for all handles
	// whose names are known, so that none is believed.
	Contradicted
)

var reasonNames = [...]string{"", "null", "unreadable", "no_name", "ambiguous", "contradicted"}

func (r Reason) String() string {
	if int(r) < len(reasonNames) {
		return reasonNames[r]
	}
	return "unknown"
}

// Layouts knows where the builds of libcuda keep the names of kernels.
type Layouts struct {
	of map[string]*layout // by build id
}

// layout is what was learnt of one build.
type layout struct {
	// offsets are where a known name was found in every structure so far. A
	// CUfunction and a CUkernel may differ; then there are two lists.
	offsets [][]uint64
	learnt  int
	// missed are known names that were not where they should be. Now and then one
	// is: the kernel was unloaded before anyone looked.
	missed int
}

// wrong reports whether what was learnt does not hold.
func (l *layout) wrong() bool { return l.missed > 2 && 4*l.missed > l.learnt }

// maxKinds is how many kinds of structure a handle may stand for.
const maxKinds = 2

// enough is after how many known handles no more is to be learnt.
const enough = 64

// NewLayouts returns an empty memory of layouts.
func NewLayouts() *Layouts { return &Layouts{map[string]*layout{}} }

func (l *Layouts) get(build string) *layout {
	one, ok := l.of[build]
	if !ok {
		one = &layout{}
		l.of[build] = one
	}
	return one
}

// Learn takes a handle whose name is known from the call that made it.
func (l *Layouts) Learn(build string, handle uint64, name string, memory Memory) {
	layout := l.get(build)
	if layout.learnt >= enough || !isAddress(handle) || !isName([]byte(name)) {
		return
	}
	words := memory.words(handle)
	if len(words) == 0 {
		return // gone already: it says nothing
	}
	var found []uint64
	for at := 0; at+8 <= len(words); at += 8 {
		if p := binary.LittleEndian.Uint64(words[at:]); isAddress(p) && memory.name(p) == name {
			found = append(found, uint64(at))
		}
	}
	layout.learnt++
	layout.take(found)
}

// take narrows the list that a structure agrees with, or begins one.
func (l *layout) take(found []uint64) {
	for i, offsets := range l.offsets {
		var common []uint64
		for _, a := range offsets {
			for _, b := range found {
				if a == b {
					common = append(common, a)
				}
			}
		}
		if len(common) > 0 {
			l.offsets[i] = common
			return
		}
	}
	if len(found) == 0 || len(l.offsets) == maxKinds {
		l.missed++
		return
	}
	l.offsets = append(l.offsets, found)
}

// Name reads the name of the kernel behind a handle. Without a handle learnt
// before, it believes the usual place, then the only name that the structure has.
func (l *Layouts) Name(build string, handle uint64, memory Memory) (string, Reason) {
	if !isAddress(handle) {
		return "", Null
	}
	words := memory.words(handle)
	if len(words) == 0 {
		return "", Unreadable
	}
	layout := l.get(build)
	switch {
	case layout.wrong():
		return "", Contradicted
	case len(layout.offsets) > 0:
		var names []string
		for _, offsets := range layout.offsets {
			names = appendNew(names, nameAt(words, offsets[0], memory))
		}
		return only(names)
	}
	if name := nameAt(words, usual, memory); name != "" {
		return name, Named
	}
	var names []string
	for at := 0; at+8 <= len(words); at += 8 {
		names = appendNew(names, nameAt(words, uint64(at), memory))
	}
	return only(names)
}

func nameAt(words []byte, offset uint64, memory Memory) string {
	if offset+8 > uint64(len(words)) {
		return ""
	}
	p := binary.LittleEndian.Uint64(words[offset:])
	if !isAddress(p) {
		return ""
	}
	return memory.name(p)
}

func appendNew(names []string, name string) []string {
	if name == "" {
		return names
	}
	for _, n := range names {
		if n == name {
			return names
		}
	}
	return append(names, name)
}

func only(names []string) (string, Reason) {
	switch len(names) {
	case 0:
		return "", NoName
	case 1:
		return names[0], Named
	}
	return "", Ambiguous
}

// isAddress: a pointer into a process, not into its first page or the kernel.
// Structures are aligned, strings are not: alignment is not asked for.
func isAddress(p uint64) bool { return p >= pageBytes && p < 1<<47 }
