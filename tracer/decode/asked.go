package decode

import (
	"encoding/binary"
	"encoding/json"
	"strconv"
	"unsafe"

	"github.com/ebpfprof/ebpfprof/bpf"
	"github.com/ebpfprof/ebpfprof/tracer/catalog/spec"
	"github.com/ebpfprof/ebpfprof/tracer/event"
)

// Calls that a user asked for: their arguments have no meaning here, but names and types.

// mostStringsWait is how many strings wait for their call, whose record may have been lost.
const mostStringsWait = 1 << 14

// askedStrings are the strings of one call, by the value that points to them.
type askedStrings [spec.MostStrings]*string

// keepString keeps a string until its call's record comes.
func (c *calls) keepString(id uint64, which uint8, text string) {
	strings, _ := c.strings.Get(id)
	if int(which) < len(strings) {
		strings[which] = &text
		c.strings.Half = mostStringsWait
		c.strings.Put(id, strings)
	}
}

// arguments gives a row what the user asked for, as JSON: {"n": 3, "path": "a", "return": 0}. null is a pointer to nothing,
// and what could not be read.
func (c *calls) arguments(s *event.Span, asked *spec.Asked, f *spec.Function, r *callRecord, resultSeen bool) {
	strings, _ := c.strings.Take(r.SpanId)
	text := []byte{'{'}
	add := func(name string, value []byte) {
		if len(text) > 1 {
			text = append(text, ',', ' ')
		}
		quoted, _ := json.Marshal(name)
		text = append(append(append(text, quoted...), ':', ' '), value...)
	}
	for i := range asked.Arguments {
		a := &asked.Arguments[i]
		switch {
		case a.Name == "":
		case a.Unread != "" || a.Value >= 0 && (int(a.Value) >= len(r.args) || r.Faults&(1<<a.Value) != 0):
			add(a.Name, null)
		case a.Value < 0:
			add(a.Name, shown(a, uint64(a.Constant)))
		case a.Kind == spec.String:
			value := null
			if text := strings[a.Value%spec.MostStrings]; text != nil {
				value, _ = json.Marshal(*text)
			}
			add(a.Name, value)
		default:
			add(a.Name, shown(a, f.Values[a.Value].Number(r.args[a.Value])))
		}
	}
	if a := asked.Returned; a != nil {
		value := null
		if resultSeen && r.endSeen() {
			number := spec.Value{Bits: a.Bits, Signed: a.Kind == spec.Signed}
			value = shown(a, number.Number(r.ret))
		}
		add(a.Name, value)
	}
	if len(text) > 1 {
		s.MakeDetail().Arguments = string(append(text, '}'))
	}
}

var null = []byte("null")

// shown is a number as JSON.
func shown(a *spec.Argument, number uint64) []byte {
	switch a.Kind {
	case spec.Boolean:
		return strconv.AppendBool(nil, number != 0)
	case spec.Pointer, spec.String:
		if number == 0 {
			return null
		}
		return []byte(`"0x` + strconv.FormatUint(number, 16) + `"`)
	case spec.Unsigned:
		return strconv.AppendUint(nil, number, 10)
	}
	return strconv.AppendInt(nil, int64(number), 10)
}

// whichString is which of its call's strings a record has.
func (c *calls) whichString(raw []byte) (which uint8, asked bool) {
	probe := c.probes.Find(binary.NativeEndian.Uint32(raw[unsafe.Offsetof(bpf.CallTextRecord{}.Spec):]))
	return raw[1] >> 1, probe != nil && probe.Planned.Function.Asked != nil
}
