package symbolize

import (
	"cmp"
	"slices"
	"sync"

	"github.com/ebpfprof/ebpfprof/symbolize/elf"
)

// FileKey is what the kernel knows a mapped file by.
type FileKey struct {
	Major, Minor uint32
	Inode        uint64
}

// Mapping is one executable mapping of a process.
type Mapping struct {
	Start, End uint64 // addresses in the process
	FileOffset uint64
	// Path is as /proc/PID/maps has it, without " (deleted)": "" or "[heap]"
	// for memory that is no file.
	Path string
	Key  FileKey
	// Open opens the mapped file, whatever became of its name; nil for memory
	// that is no file.
	Open func() (*elf.File, error)
}

// Names knows the files that processes run code from. Each is opened once,
// while a process maps it, and stays open until too many others were used since:
// names outlive the process and the file's own name on disk. The methods are safe for concurrent use.
type Names struct {
	// Beside runs what takes long when the first name of a file is asked for, so that who
	// asks can do something else meanwhile, and returns when it is done. It is set before
	// anything is asked for; nil just runs it.
	Beside func(slow func())

	mu    sync.Mutex
	files map[FileKey]*File
	open  openFiles
	vdso  *File
}

// NewNames returns an empty Names.
func NewNames() *Names {
	return &Names{files: map[FileKey]*File{}, open: openFiles{limit: maxOpenFiles}}
}

// Close closes the files. Frames stay good; File and Space must not be asked
// for new ones.
func (n *Names) Close() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.open.close()
	n.files = map[FileKey]*File{}
}

// file opens a mapping's file, unless it is known. Files of one build id do not
// share their names: whoever made a file made its build id too.
func (n *Names) file(m *Mapping) *File {
	n.mu.Lock()
	defer n.mu.Unlock()
	if m.Path == vdsoPath {
		if n.vdso == nil {
			n.vdso = openVDSO()
		}
		return n.vdso
	}
	if m.Open == nil {
		return nil
	}
	if f := n.files[m.Key]; f != nil && f.mapped(m) {
		return f
	}
	if len(n.files) >= maxKnownFiles {
		n.forget()
	}
	e, err := m.Open()
	if err != nil {
		f := unreadable(m.Path, err)
		n.files[m.Key] = f
		return f
	}
	f := NewFile(e, m.Path)
	n.files[m.Key] = f
	f.mu.Lock()
	defer f.mu.Unlock()
	f.open, f.reopen, f.beside = &n.open, m.Open, n.Beside
	f.touch()
	return f
}

// maxKnownFiles bounds the files, open or not, that a mapping's key leads to: four times
// those that are open, since of each that is not some names are kept.
const maxKnownFiles = 4 * maxOpenFiles

// forget drops the files that are not open.
func (n *Names) forget() {
	for key, f := range n.files {
		f.mu.Lock()
		if f.elf == nil {
			delete(n.files, key)
		}
		f.mu.Unlock()
	}
}

// mapped notes how the file can be opened again, and reports whether it is still
// the one of its inode.
func (f *File) mapped(m *Mapping) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.reopen = m.Open
	return !f.lost
}

// Lost counts the frames without a function because their file had been closed to
// make room for others and was gone, and the functions that stayed mangled because
// their file's names take too long.
func (n *Names) Lost() (unnamed, mangled uint64) {
	return n.open.unnamed.Load(), n.open.mangled.Load()
}

// Space is the address space of one process. Its methods are safe for
// concurrent use.
type Space struct {
	names *Names

	mu      sync.RWMutex
	regions []region                    // sorted, disjoint
	named   map[codeAddress]*NamedFrame // by the present regions
	labels  map[labelKey]string         // of their functions
	version uint                        // of the regions
}

// codeAddress is the key of a Space's cache of frames: an address, which in user
// space leaves a bit for whether it is one that a call returns to.
type codeAddress uint64

func codeAddressOf(address uint64, returns bool) codeAddress {
	key := codeAddress(address << 1)
	if returns {
		key |= 1
	}
	return key
}

// labelKey is what the label of a frame that has a name depends on.
type labelKey struct{ function, module string }

type region struct {
	start, end uint64
	fileOffset uint64
	path       string
	file       *File // nil: memory that is no file
}

// Space makes the address space of a process from its executable mappings, and
// opens the files that are new. Call it while the process lives.
func (n *Names) Space(mappings []Mapping) *Space {
	s := &Space{names: n}
	s.Update(mappings)
	return s
}

// Update takes the process's mappings as they are now. What is not mapped any
// more keeps its names where nothing else took its place: an address may have
// been sampled before. It reports whether anything has changed.
func (s *Space) Update(mappings []Mapping) (changed bool) {
	regions := make([]region, 0, len(mappings))
	for i := range mappings {
		m := &mappings[i]
		if m.Start < m.End {
			regions = append(regions, region{m.Start, m.End, m.FileOffset, m.Path, s.names.file(m)})
		}
	}
	sortRegions(regions)
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, old := range s.regions {
		if _, taken := overlapping(regions, old.start, old.end); !taken && old.file != nil {
			regions = append(regions, old)
		}
	}
	sortRegions(regions)
	changed = !slices.Equal(s.regions, regions)
	if s.regions = regions; changed {
		clear(s.named)
		s.version++
	}
	return changed
}

func sortRegions(regions []region) {
	slices.SortFunc(regions, func(a, b region) int { return cmp.Compare(a.start, b.start) })
}

// overlapping finds a region that shares an address with [start, end).
func overlapping(regions []region, start, end uint64) (int, bool) {
	i, _ := slices.BinarySearchFunc(regions, start, func(r region, address uint64) int {
		if r.end <= address {
			return -1
		}
		return 1
	})
	return i, i < len(regions) && regions[i].start < end
}

// Known reports whether code is known to be mapped at the address. If not, the
// process has mapped something since: Update.
func (s *Space) Known(address uint64) bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	_, ok := overlapping(s.regions, address, address+1)
	return ok
}

// Frame names the code at an address of the process. A return address lies
// behind its call, and where the call never returns, behind its function: the
// byte before it is named.
func (s *Space) Frame(address uint64, returns bool) Frame { return s.Named(address, returns).Frame }

// Named is Frame with the label. The caller must leave it as it is.
func (s *Space) Named(address uint64, returns bool) *NamedFrame {
	key := codeAddressOf(address, returns)
	s.mu.RLock()
	known := s.named[key]
	version := s.version
	s.mu.RUnlock()
	if known != nil {
		return known
	}
	named := &NamedFrame{Frame: s.frame(address, returns)}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.named == nil || len(s.named) >= maxCached {
		s.named, s.labels = map[codeAddress]*NamedFrame{}, map[labelKey]string{}
	}
	s.label(named)
	if version == s.version {
		s.named[key] = named
	}
	return named
}

// label gives a frame its label; all frames of one function share it.
func (s *Space) label(f *NamedFrame) {
	key := labelKey{f.Function, f.Module}
	if f.Function != "" {
		if f.Folded = s.labels[key]; f.Folded != "" {
			return
		}
	}
	if f.Folded = f.FoldedLabel(); f.Function != "" {
		s.labels[key] = f.Folded
	}
}

func (s *Space) frame(address uint64, returns bool) Frame {
	r, virtual, ok := s.locate(address, returns)
	switch {
	case r == nil:
		return Frame{Kind: Native, Module: "[unknown]", Offset: -1}
	case r.file == nil:
		return Frame{Kind: Native, Module: memoryName(r.path), Offset: -1}
	case !ok:
		return Frame{Kind: Native, Module: r.file.module, BuildID: r.file.buildID, Offset: -1}
	}
	return r.file.Frame(virtual)
}

// Operator is the operator whose call function the code is that Frame named
// before, "" for other code.
func (s *Space) Operator(address uint64, returns bool) string {
	r, virtual, ok := s.locate(address, returns)
	if !ok {
		return ""
	}
	return r.file.Operator(virtual)
}

// locate finds the region that an address is in, nil for none, and the virtual
// address of its file, ok where it has code there.
func (s *Space) locate(address uint64, returns bool) (r *region, virtual uint64, ok bool) {
	if returns {
		address--
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	i, ok := overlapping(s.regions, address, address+1)
	if !ok {
		return nil, 0, false
	}
	found := s.regions[i]
	if found.file == nil || found.file.layout == nil {
		return &found, 0, false
	}
	virtual, ok = found.file.layout.CodeAddress(address - found.start + found.fileOffset)
	return &found, virtual, ok
}

// memoryName names memory that is no file as maps does.
func memoryName(path string) string {
	if path == "" || path[0] != '[' {
		return "[anon]"
	}
	return path
}
