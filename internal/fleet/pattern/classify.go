package pattern

import (
	"hash/fnv"
	"strings"

	"github.com/ebpfprof/ebpfprof/symbolize"
	"github.com/ebpfprof/ebpfprof/tracer/event"
)

// function is what a stack is taken for.
type function struct {
	key   uint64
	class Class
	name  string
	stack string
	file  string
	line  int32
}

// place is from where a function is called: several call the same operator.
type place struct {
	stack, file string
	line        int32
}

// mostPlaces of a function are kept apart.
const mostPlaces = 64

func (u *usage) at(p place, ns int64) {
	if u.places == nil {
		u.places = map[place]int64{}
	}
	if _, ok := u.places[p]; ok || len(u.places) < mostPlaces {
		u.places[p] += ns
	}
}

// longest is the place that most of the function's time was seen at.
func (u *usage) longest() (best place, ok bool) {
	var ns int64
	for p, n := range u.places {
		if !ok || n > ns || n == ns && (p.line < best.line || p.line == best.line && p.stack < best.stack) {
			best, ns, ok = p, n, true
		}
	}
	return best, ok
}

// A Python function is the same where its whole stack of functions is, lines left out
// (PerfTracker's rule); anything else where its name is.
func (f *function) hash() {
	h := fnv.New64a()
	h.Write([]byte(f.class))
	h.Write([]byte{0})
	if f.stack != "" && f.class != Collective && f.class != Compute && f.class != Copy {
		h.Write([]byte(f.stack))
	}
	h.Write([]byte{0})
	h.Write([]byte(f.name))
	f.key = h.Sum64() >> 1 // fits a signed column
}

// longestStack bounds what is kept of a stack's names.
const longestStack = 4096

// sighted is what of a stack decides what it is taken for.
type sighted struct {
	loader                              bool
	operator, node, collective, copying string
	leaf, stack                         string // Python's
	file                                string
	line                                int32
	outermost                           string
}

// sight looks at a stack, leaf first.
func sight(frames []event.Frame) (s sighted) {
	var names []string
	for _, frame := range frames { // what stands further out overwrites
		switch frame.Kind {
		case symbolize.Python:
			if s.file == "" {
				s.file, s.line = frame.File, frame.Line
			}
			names = append(names, frame.Function+" ("+symbolize.ShortPath(frame.File)+")")
			s.loader = s.loader || loaderNext(frame)
		case symbolize.Native:
			name := frame.Function
			switch {
			case strings.HasPrefix(name, "at::_ops::"):
				if op, _, ok := strings.Cut(name[len("at::_ops::"):], "::"); ok {
					s.operator = "aten::" + operatorName(op)
				}
			case strings.HasPrefix(name, "c10d::") && !strings.HasPrefix(name, "c10d::Reducer"), strings.HasPrefix(name, "nccl"):
				s.collective = name
			case copies(name):
				s.copying = name
			case strings.HasSuffix(name, "Backward0::apply"), strings.HasSuffix(name, "Backward1::apply"):
				s.node = strings.TrimSuffix(name[strings.LastIndex(name[:len(name)-len("::apply")], ":")+1:], "::apply")
			}
		}
	}
	if len(names) > 0 {
		s.leaf, s.stack = names[0], joinReversed(names)
	} else {
		s.outermost = outermost(frames)
	}
	return s
}

// classify says what a stack belongs to. The loader claims everything inside it, a
// collective everything outside of a loader, and so on in the order of Classes; what is
// left is Python's.
func (s *sighted) classify(collecting bool) function {
	f := function{stack: s.stack, file: s.file, line: s.line}
	switch {
	case s.loader:
		f.class, f.name = Loader, s.leaf
	case s.collective != "":
		f.class, f.name = Collective, trimArguments(s.collective)
	case s.copying != "":
		f.class, f.name = Copy, trimArguments(s.copying)
	case s.operator != "" && !collecting:
		f.class, f.name = Compute, s.operator
		if s.node != "" {
			f.name = s.node
		}
	case s.node != "" && !collecting:
		f.class, f.name = Compute, s.node
	case s.leaf != "":
		f.class, f.name = Python, s.leaf
	default:
		f.class, f.name = Other, s.outermost
	}
	if collecting {
		f.name = "garbage collection in " + f.name
	}
	f.hash()
	return f
}

// loaderNext recognises the function of torch/utils/data/dataloader.py that a loop
// calls for its next batch.
func loaderNext(f event.Frame) bool {
	return strings.HasSuffix(f.Function, "__next__") && strings.HasSuffix(f.File, "torch/utils/data/dataloader.py")
}

func copies(name string) bool {
	for _, prefix := range []string{"cuMemcpy", "cudaMemcpy", "hipMemcpy", "cuMemset", "hipMemset"} {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return false
}

// operatorName drops the overload, which begins with a capital: add__Tensor is
// aten::add_. Overloads without one (empty_memory_format) stay.
func operatorName(name string) string {
	for i := 1; i+1 < len(name); i++ {
		if name[i] == '_' && name[i+1] >= 'A' && name[i+1] <= 'Z' {
			return name[:i]
		}
	}
	return name
}

func trimArguments(name string) string {
	if i := strings.IndexByte(name, '('); i > 0 {
		return name[:i]
	}
	return name
}

func joinReversed(names []string) string {
	var b strings.Builder
	for i := len(names) - 1; i >= 0; i-- {
		if b.Len()+len(names[i]) > longestStack {
			b.WriteString(";…")
			break
		}
		if b.Len() > 0 {
			b.WriteByte(';')
		}
		b.WriteString(names[i])
	}
	return b.String()
}

// outermost names a stack without Python after the function nearest to the thread's
// start that is not the C library's.
func outermost(frames []event.Frame) string {
	for i := len(frames) - 1; i >= 0; i-- {
		f := frames[i]
		if f.Kind == symbolize.Native && f.Function != "" && !strings.HasPrefix(f.Module, "libc.so") && !strings.HasPrefix(f.Function, "_start") {
			return trimArguments(f.Function)
		}
	}
	return "unknown"
}

// ioCalls are system calls that read or write; what a thread waits for in them is a
// file's, a pipe's or a socket's.
var ioCalls = map[string]bool{
	"read": true, "pread64": true, "readv": true, "preadv": true, "write": true, "pwrite64": true, "writev": true,
	"recvfrom": true, "recvmsg": true, "sendto": true, "sendmsg": true, "fsync": true, "fdatasync": true,
	"openat": true, "newfstatat": true, "getdents64": true, "sendfile": true, "copy_file_range": true,
}
