package cpython

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
)

// debugCookie begins _Py_DebugOffsets, and with that _PyRuntime, since 3.13.
const debugCookie = "xdebugpy"

// The layout of _Py_DebugOffsets is positional and differs by minor version:
// words of 64 bits after the cookie. These are the fields in order, up to the
// last that is of use (Include/internal/pycore_runtime.h of 3.13.0 and
// pycore_debug_offsets.h of 3.14.10; what is read by it equals offsetof on
// both, TestOffsetsThatABuildSaysOfItselfEqualOffsetof).
const (
	debugFields313 = `version free_threaded
		runtime.size runtime.finalizing runtime.interpreters_head
		interpreter.size interpreter.id interpreter.next interpreter.threads_head interpreter.gc
		interpreter.imports_modules interpreter.sysdict interpreter.builtins interpreter.ceval_gil
		interpreter.gil interpreter.gil_enabled interpreter.gil_locked interpreter.gil_holder
		thread.size thread.prev thread.next thread.interp thread.current_frame thread.thread_id
		thread.native_thread_id thread.datastack_chunk thread.status
		frame.size frame.previous frame.executable frame.instr_ptr frame.localsplus frame.owner
		code.size code.filename code.name code.qualname code.linetable code.firstlineno code.argcount
		code.localsplusnames code.localspluskinds code.co_code_adaptive
		object.size object.ob_type
		type.size type.tp_name type.tp_repr type.tp_flags
		tuple.size tuple.ob_item tuple.ob_size
		list.size list.ob_item list.ob_size
		dict.size dict.ma_keys dict.ma_values
		float.size float.ob_fval
		long.size long.lv_tag long.ob_digit
		bytes.size bytes.ob_size bytes.ob_sval
		unicode.size unicode.state unicode.length unicode.asciiobject_size
		gc.size gc.collecting`
	debugFields314 = `version free_threaded
		runtime.size runtime.finalizing runtime.interpreters_head
		interpreter.size interpreter.id interpreter.next interpreter.threads_head interpreter.threads_main
		interpreter.gc interpreter.imports_modules interpreter.sysdict interpreter.builtins interpreter.ceval_gil
		interpreter.gil interpreter.gil_enabled interpreter.gil_locked interpreter.gil_holder
		interpreter.code_object_generation interpreter.tlbc_generation
		thread.size thread.prev thread.next thread.interp thread.current_frame thread.thread_id
		thread.native_thread_id thread.datastack_chunk thread.status
		frame.size frame.previous frame.executable frame.instr_ptr frame.localsplus frame.owner
		frame.stackpointer frame.tlbc_index
		code.size code.filename code.name code.qualname code.linetable code.firstlineno code.argcount
		code.localsplusnames code.localspluskinds code.co_code_adaptive code.co_tlbc
		object.size object.ob_type
		type.size type.tp_name type.tp_repr type.tp_flags
		tuple.size tuple.ob_item tuple.ob_size
		list.size list.ob_item list.ob_size
		set.size set.used set.table set.mask
		dict.size dict.ma_keys dict.ma_values
		float.size float.ob_fval
		long.size long.lv_tag long.ob_digit
		bytes.size bytes.ob_size bytes.ob_sval
		unicode.size unicode.state unicode.length unicode.asciiobject_size
		gc.size gc.collecting`
)

// Errors of ParseDebugOffsets.
var (
	// ErrNoDebugOffsets: the bytes do not begin with the cookie.
	ErrNoDebugOffsets = errors.New("no _Py_DebugOffsets")
	// ErrDebugOffsets: they do, but what follows is not what the version has.
	ErrDebugOffsets = errors.New("_Py_DebugOffsets make no sense")
)

// DebugOffsets is what a CPython since 3.13 says of itself.
type DebugOffsets struct {
	Version Version
	fields  map[string]int
}

// ParseDebugOffsets reads the beginning of the section .PyRuntime, or of
// _PyRuntime in memory. The errors are ErrNoDebugOffsets, ErrDebugOffsets, and
// *UnsupportedError for a minor version whose layout is not known.
func ParseDebugOffsets(b []byte) (*DebugOffsets, error) {
	words, ok := strings.CutPrefix(string(b[:min(len(b), 4096)]), debugCookie)
	if !ok || len(words) < 16 {
		return nil, ErrNoDebugOffsets
	}
	word := func(i int) uint64 { return binary.LittleEndian.Uint64([]byte(words[8*i:])) }
	hex := word(0)
	v := Version{int(hex >> 24 & 0xff), int(hex >> 16 & 0xff), int(hex >> 8 & 0xff), word(1) == 1}
	var names []string
	switch {
	case v.Major == 3 && v.Minor == 13:
		names = strings.Fields(debugFields313)
	case v.Major == 3 && v.Minor == 14:
		names = strings.Fields(debugFields314)
	default:
		return nil, &UnsupportedError{Version: v.String(), Flavour: FlavourVersion}
	}
	if len(words) < 8*len(names) {
		return nil, fmt.Errorf("%w: %d bytes, Python %s has %d", ErrDebugOffsets, len(words), v, 8*len(names))
	}
	d := &DebugOffsets{v, map[string]int{}}
	for i, name := range names {
		d.fields[name] = int(min(word(i), 1<<31))
	}
	return d, d.check()
}

// check holds every offset against the size of its structure.
func (d *DebugOffsets) check() error {
	if holder, gil := d.fields["interpreter.gil_holder"], d.fields["interpreter.gil"]; holder < gil || holder-gil > 256 {
		return fmt.Errorf("%w: the GIL's holder is at %d, the GIL at %d", ErrDebugOffsets, holder, gil)
	}
	for name, offset := range d.fields {
		group, field, _ := strings.Cut(name, ".")
		size, sized := d.fields[group+".size"]
		if !sized || field == "size" {
			continue
		}
		if group == "gc" || strings.HasPrefix(field, "gil_") { // counted inside another structure
			size = 1 << 20
		}
		if size > 1<<24 || offset >= size && !variable(name) {
			return fmt.Errorf("%w: %s is %d in a structure of %d bytes", ErrDebugOffsets, name, offset, size)
		}
	}
	return nil
}

// variable names the fields that may lie at the very end of their structure:
// arrays of variable length, and a size.
func variable(name string) bool {
	switch name {
	case "tuple.ob_item", "code.co_code_adaptive", "unicode.asciiobject_size", "long.ob_digit", "bytes.ob_sval":
		return true
	}
	return false
}

// Apply replaces what a table says by what the build itself says.
func (d *DebugOffsets) Apply(o Offsets) Offsets {
	set := func(to *int, name string) {
		if v, ok := d.fields[name]; ok {
			*to = v
		}
	}
	set(&o.RuntimeSize, "runtime.size")
	set(&o.RuntimeInterpreters, "runtime.interpreters_head")
	// The pointer to the main interpreter is the next field.
	o.RuntimeMain = o.RuntimeInterpreters + 8
	set(&o.InterpreterNext, "interpreter.next")
	set(&o.InterpreterThreads, "interpreter.threads_head")
	set(&o.InterpreterGIL, "interpreter.ceval_gil")
	o.GILHolder = d.fields["interpreter.gil_holder"] - d.fields["interpreter.gil"]
	o.InterpreterCollecting = d.fields["interpreter.gc"] + d.fields["gc.collecting"]
	set(&o.StateNext, "thread.next")
	set(&o.StateInterpreter, "thread.interp")
	set(&o.StateFrames, "thread.current_frame")
	set(&o.StateThread, "thread.thread_id")
	set(&o.StateNative, "thread.native_thread_id")
	set(&o.FrameCode, "frame.executable")
	set(&o.FramePrevious, "frame.previous")
	set(&o.FrameInstruction, "frame.instr_ptr")
	set(&o.FrameOwner, "frame.owner")
	set(&o.CodeArgcount, "code.argcount")
	// posonlyargcount lies between the two since 3.8.
	o.CodeKwonly = o.CodeArgcount + 8
	set(&o.CodeLine, "code.firstlineno")
	set(&o.CodeFilename, "code.filename")
	set(&o.CodeName, "code.name")
	set(&o.CodeQualname, "code.qualname")
	set(&o.CodeLinetable, "code.linetable")
	set(&o.CodeStart, "code.co_code_adaptive")
	if d.Version.FreeThreaded {
		o.InterpreterGIL, o.GILHolder = Absent, Absent
		set(&o.FrameTLBC, "frame.tlbc_index")
		set(&o.CodeTLBC, "code.co_tlbc")
	}
	set(&o.ObjectType, "object.ob_type")
	set(&o.TypeName, "type.tp_name")
	set(&o.UnicodeLength, "unicode.length")
	set(&o.UnicodeState, "unicode.state")
	set(&o.UnicodeASCII, "unicode.asciiobject_size")
	set(&o.BytesSize, "bytes.ob_size")
	set(&o.BytesData, "bytes.ob_sval")
	return o
}
