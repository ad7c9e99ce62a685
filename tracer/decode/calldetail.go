package decode

import (
	"github.com/ebpfprof/ebpfprof/tracer/accel"
	"github.com/ebpfprof/ebpfprof/tracer/catalog"
	"github.com/ebpfprof/ebpfprof/tracer/event"
)

// What a call says beside that it was made: its captured arguments and its
// result, under the names that the catalog gives them.

// detail fills what the catalog says about the captured arguments; it returns
// the call if that was one into an accelerator runtime.
func (c *calls) detail(s *event.Span, f *catalog.Function, r *callRecord) *accel.Call {
	name := ""
	if f.Text != catalog.NoText {
		name, _ = c.texts.Take(r.SpanId)
	}
	var a accel.Arguments
	c.called = r.call()
	a.Read(f, &c.called)
	if a.Has(catalog.FieldSequence) {
		s.SequenceNumber = int64(a.Value(catalog.FieldSequence))
		r.thread = unknownThread
		if a.Has(catalog.FieldForwardThread) {
			r.thread = uint32(a.Value(catalog.FieldForwardThread) & threadMask)
		}
	}
	s.Detail = a.Detail(f)
	if direction := a.Direction(f); direction != "" {
		s.MakeDetail().Direction = direction
	}
	if f.Returns != catalog.FieldNone && r.hasRet && s.Status == event.StatusOK {
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
	case catalog.FromText:
		if name != "" {
			s.Call = c.rows.Names.Name(r.Spec, s.Call, name)
		}
	case catalog.FromVTable:
		if class, ok := c.classes.Class(r.Tgid, a.Value(catalog.FieldNodeVTable)); ok {
			s.Call = c.rows.Names.Name(r.Spec, s.Call, class)
		}
	case catalog.FromExecutable:
		s.MakeDetail().NameSource = accel.NameUnknown
		if name, ok := c.runtimes.executables.Name(r.Tgid, a.Value(catalog.FieldKernel)); ok {
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
func returned(s *event.Span, f *catalog.Function, r *callRecord, a *accel.Arguments) {
	if r.ret != 0 {
		a.Set(f.Returns, r.ret)
		switch made := int64(r.ret); f.Returns {
		case catalog.FieldStream:
			s.MakeDetail().Stream = &made
		case catalog.FieldContext:
			s.MakeDetail().Context = &made
		case catalog.FieldHandle:
			s.MakeDetail().Handle = &made
		}
		return
	}
	s.Status = event.StatusError
	if a.Has(catalog.FieldError) {
		code := int64(int32(a.Value(catalog.FieldError)))
		s.MakeDetail().ErrorCode = &code
	}
}
