package symbolize

import (
	"fmt"
	"strings"
)

// Kind says what a frame of a call stack is: the values of stack.frames.kind.
type Kind string

// The kinds of frames.
const (
	Python Kind = "python" // a line of Python
	Native Kind = "native" // machine code of the process
	Kernel Kind = "kernel" // machine code of the kernel
	Op     Kind = "op"     // an operator or scope of the framework, no code of its own
)

// Frame is one frame of a call stack, and what is known of it: the fields of
// stack.frames. The zero value of a field is "not known", of Offset -1.
type Frame struct {
	Kind Kind
	// Function is the qualified name of a Python function, the short demangled
	// one of a native one. Code without a symbol is named after the place where
	// its frame description begins, which is the same for the whole function:
	// "libcuda.so.1+0x1a2b30 (fn)". "" where not even that is known.
	Function string
	// File and Line are a Python frame's; native code has its Offset instead.
	File string
	Line int32
	// Module is the file's name without its directory; "[vdso]", "[kernel]" or
	// the kernel module's name, "[anon]" for code that is in no file. "" of a
	// Python frame.
	Module string
	// BuildID is elf.File.FileID of the file; "" outside of files.
	BuildID string
	// Offset is the virtual address in the file, which is what addr2line
	// takes, -1 where there is none. Of a kernel frame it counts from the
	// beginning of the kernel or module. That of a return address is one less:
	// it lies in the call, not behind it.
	Offset int64
}

// Label is the frame in one line, for people and for flame graphs: "forward
// (torch/nn/modules/linear.py)", "at::native::addmm (libtorch_cpu.so)",
// "do_syscall_64_[k]". Frames of one function have one label.
func (f *Frame) Label() string { return string(f.appendLabel(nil)) }

func (f *Frame) appendLabel(b []byte) []byte {
	name := f.Function
	switch {
	case name == "" && f.Module == "":
		b = append(b, "[unknown]"...)
	case name == "" && f.Offset < 0:
		b = append(b, f.Module...)
	case name == "":
		b = fmt.Appendf(b, "%s+%#x", f.Module, f.Offset)
	case f.Kind == Python && f.File != "":
		b = append(append(append(append(b, name...), " ("...), ShortPath(f.File)...), ')')
	case f.Kind == Native && f.Module != "" && !IsNameless(name):
		b = append(append(append(append(b, name...), " ("...), f.Module...), ')')
	default:
		b = append(b, name...)
	}
	if f.Kind == Kernel {
		b = append(b, "_[k]"...) // what flamegraph.pl colours
	}
	return b
}

// FoldedLabel is Label as folded stacks can have it.
func (f *Frame) FoldedLabel() string {
	label := f.appendLabel(nil)
	fold(label)
	return string(label)
}

// NamedFrame is a frame and its FoldedLabel.
type NamedFrame struct {
	Frame
	Folded string
}

// Fold is a stack, leaf first, as one line of folded stacks: the labels from
// the thread's start on, between semicolons.
func Fold(frames []Frame) string {
	labels := make([]string, len(frames))
	for i := range frames {
		labels[i] = frames[i].FoldedLabel()
	}
	return FoldLabels(labels)
}

// FoldLabels is Fold of frames whose folded labels are known.
func FoldLabels(labels []string) string {
	size := len(labels)
	for _, label := range labels {
		size += len(label)
	}
	var b strings.Builder
	b.Grow(size)
	for i := len(labels) - 1; i >= 0; i-- {
		if b.Len() > 0 {
			b.WriteByte(';')
		}
		b.WriteString(labels[i])
	}
	return b.String()
}

// FoldLabel is a label as folded stacks can have it: a semicolon becomes a
// colon, a line break a space.
func FoldLabel(label string) string {
	b := []byte(label)
	fold(b)
	return string(b)
}

// fold replaces in place what folded stacks cannot have in a label.
func fold(label []byte) {
	for i, c := range label {
		switch c {
		case ';':
			label[i] = ':'
		case '\n', '\r':
			label[i] = ' '
		}
	}
}

// ShortPath is the path of a Python file without the directories that say
// where Python and its packages are installed: "torch/nn/functional.py".
// Other paths lose all their directories.
func ShortPath(path string) string {
	for _, packages := range []string{"/site-packages/", "/dist-packages/"} {
		if _, rest, ok := strings.Cut(path, packages); ok && rest != "" {
			return rest
		}
	}
	if _, rest, ok := strings.Cut(path, "/lib/python"); ok {
		if version, rest, ok := strings.Cut(rest, "/"); ok && rest != "" && strings.Trim(version, "0123456789.t") == "" {
			return rest
		}
	}
	return path[strings.LastIndexByte(path, '/')+1:]
}

// namelessSuffix ends the names of functions that have none.
const namelessSuffix = " (fn)"

// IsNameless reports a Function that says where a nameless function begins.
func IsNameless(function string) bool { return strings.HasSuffix(function, namelessSuffix) }
