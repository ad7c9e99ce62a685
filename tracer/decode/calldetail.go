package decode

import (
	"github.com/ebpfprof/ebpfprof/tracer/accel"
	"github.com/ebpfprof/ebpfprof/tracer/catalog/spec"
	"github.com/ebpfprof/ebpfprof/tracer/event"
)

// What a call says beside that it was made: its captured arguments and its
// result, under the names that the catalog gives them.

// detail fills what the catalog says about the captured arguments; it returns
// the call if that was one into an accelerator runtime.
func (c *calls) detail(s *event.Span, f *spec.Function, r *callRecord) *accel.Call {
	name := ""
	if f.Text != spec.NoText {
		name, _ = c.texts.Take(r.SpanId)
	}
	var a accel.Arguments
	c.called = r.call()
	a.Read(f, &c.called)
	if a.Has(spec.FieldSequence) {
		s.SequenceNumber = int64(a.Value(spec.FieldSequence))
		r.thread = unknownThread
		if a.Has(spec.FieldForwardThread) {
			r.thread = uint32(a.Value(spec.FieldForwardThread) & threadMask)
		}
	}
	s.Detail = a.Detail(f)
	if direction := a.Direction(f); direction != "" {
		s.MakeDetail().Direction = direction
	}
	if f.Returns != spec.FieldNone && r.hasRet && s.Status == event.StatusOK {
		returned(s, f, r, &a)
	}
	if f.StatusOK && s.Status == event.StatusOK && r.hasRet {
		switch code := int64(int32(r.ret)); {
		case code == 0:
		case f.NotReady != 0 && code == int64(f.NotReady):
			s.Status = event.StatusNotReady
		default:
			s.Status = event.StatusError
			s.MakeDetail().ErrorCode = &code
		}
	}
	switch f.Name {
	case spec.FromText:
		if name != "" {
			s.Call = c.rows.Names.Name(r.Spec, s.Call, name)
		}
	case spec.FromVTable:
		if class, ok := c.classes.Class(r.Tgid, a.Value(spec.FieldNodeVTable)); ok {
			s.Call = c.rows.Names.Name(r.Spec, s.Call, class)
		}
	case spec.FromExecutable:
		s.MakeDetail().NameSource = accel.NameUnknown
		if name, ok := c.runtimes.executables.Name(r.Tgid, a.Value(spec.FieldKernel)); ok {
			s.Detail.NameSource = accel.NameGetFunction
			s.Call = c.rows.Names.Name(r.Spec, s.Call, name)
		}
	}
	c.runtimes.executables.Learn(r.Tgid, r.Tid, f.Effect, &a, name)
	if f.Runtime == "" {
		return nil
	}
	return c.runtimes.calls.Take(f, &c.called, &a, name, s)
}

// returned takes a call's result, which is null where it failed.
func returned(s *event.Span, f *spec.Function, r *callRecord, a *accel.Arguments) {
	if r.ret != 0 {
		a.Set(f.Returns, r.ret)
		switch made := int64(r.ret); f.Returns {
		case spec.FieldStream:
			s.MakeDetail().Stream = &made
		case spec.FieldContext:
			s.MakeDetail().Context = &made
		case spec.FieldHandle:
			s.MakeDetail().Handle = &made
		}
		return
	}
	s.Status = event.StatusError
	if a.Has(spec.FieldError) {
		code := int64(int32(a.Value(spec.FieldError)))
		s.MakeDetail().ErrorCode = &code
	}
}
