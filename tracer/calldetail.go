package tracer

import "github.com/ebpfprof/ebpfprof/tracer/catalog"

// What a call says beside that it was made: its captured arguments and its
// result, under the names that the catalog gives them.

// detail fills what the catalog says about the captured arguments; it returns
// the call if that was one into an accelerator runtime.
func (d *decoder) detail(s *Span, f *catalog.Function, r *callRecord) *acceleratorCall {
	name := ""
	if f.Text != catalog.NoText {
		name, _ = d.texts.take(r.SpanId)
	}
	var a arguments
	a.read(f, r)
	if a.has(catalog.FieldSequence) {
		s.SequenceNumber = int64(a.value[catalog.FieldSequence])
	}
	s.Detail = a.detail(f)
	if direction := a.direction(f); direction != "" {
		s.Detail = orNew(s.Detail)
		s.Detail.Direction = direction
	}
	if f.Returns != catalog.FieldNone && r.hasRet && s.Status == StatusOK {
		d.returned(s, f, r, &a)
	}
	if f.StatusOK && s.Status == StatusOK && r.hasRet {
		switch code := int64(int32(r.ret)); {
		case code == 0:
		case f.NotReady != 0 && code == int64(f.NotReady):
			s.Status = StatusNotReady
		default:
			s.Status = StatusError
			s.Detail = orNew(s.Detail)
			s.Detail.ErrorCode = &code
		}
	}
	switch f.Name {
	case catalog.FromText:
		if name != "" {
			s.Call = d.name(r.Spec, s.Call, name)
		}
	case catalog.FromVTable:
		if class, ok := d.classes.Class(r.Tgid, a.value[catalog.FieldNodeVTable]); ok {
			s.Call = d.name(r.Spec, s.Call, class)
		}
	case catalog.FromExecutable:
		s.Detail = orNew(s.Detail)
		s.Detail.NameSource = NameUnknown
		if name, ok := d.executables.name(r.Tgid, a.value[catalog.FieldKernel]); ok {
			s.Detail.NameSource = NameGetFunction
			s.Call = d.name(r.Spec, s.Call, name)
		}
	}
	d.executables.learn(r.Tgid, r.Tid, f.Effect, &a, name)
	if f.Runtime == "" {
		return nil
	}
	c := &acceleratorCall{
		accelerator: d.accelerators.get(r.Tgid, f.Runtime), pid: r.Tgid, tid: r.Tid,
		f: f, r: r, args: &a, text: name, span: s,
	}
	d.accelerate(c)
	return c
}

// name returns a call like base with another name, the same one each time.
func (d *decoder) name(spec uint32, base *Call, name string) *Call {
	key := callName{spec, base.Category, name}
	call, ok := d.named[key]
	if !ok {
		copied := *base
		copied.Name = name
		call = &copied
		d.named[key] = call
	}
	return call
}

// recategorize returns a call like base of another category, the same one each time.
func (d *decoder) recategorize(spec uint32, base *Call, category string) *Call {
	key := callName{spec, category, base.Name}
	call, ok := d.named[key]
	if !ok {
		copied := *base
		copied.Category = category
		call = &copied
		d.named[key] = call
	}
	return call
}

// returned takes a call's result, which is null where it failed.
func (d *decoder) returned(s *Span, f *catalog.Function, r *callRecord, a *arguments) {
	if r.ret != 0 {
		a.value[f.Returns], a.known[f.Returns] = r.ret, true
		switch made := int64(r.ret); f.Returns {
		case catalog.FieldStream:
			s.Detail = orNew(s.Detail)
			s.Detail.Stream = &made
		case catalog.FieldContext:
			s.Detail = orNew(s.Detail)
			s.Detail.Context = &made
		case catalog.FieldHandle:
			s.Detail = orNew(s.Detail)
			s.Detail.Handle = &made
		}
		return
	}
	s.Status = StatusError
	if a.has(catalog.FieldError) {
		code := int64(int32(a.value[catalog.FieldError]))
		s.Detail = orNew(s.Detail)
		s.Detail.ErrorCode = &code
	}
}
