package accel

// innerCall is the last call that a thread made into a runtime: a library that
// stands in front of it (for quotas, for virtual GPUs) has the same functions,
// and calls the real ones inside its own.
type innerCall struct {
	parent int64
	label  string
}

// interposer is the category of the outer of two calls that are one.
const interposer = "interposer"

// interposes reports whether the call's work was already seen in a call of the
// same function inside it. Its row stays, in a category of its own, and changes
// nothing: launches, copies and bytes are those of the inner call.
func (c *Call) interposes() bool {
	inner, ok := c.inner[c.tid]
	if ok && inner.parent == c.span.ID && inner.label == c.f.Label {
		c.span.Call = c.state.rows.Recategorize(c.r.Spec, c.span.Call, interposer)
		c.outer = true
	}
	c.inner[c.tid] = innerCall{c.span.ParentID, c.f.Label}
	return c.outer
}
