package holders

import (
	"slices"
	"strings"

	"github.com/ebpfprof/ebpfprof/internal/answer/memplan/blocks"
)

// Context knows the stacks and spans that blocks refer to.
type Context struct {
	Paths map[int64]Path
	Spans map[int64]Span
	// StepsNS are when steps begin; none if there are none.
	StepsNS []int64
}

// kept: a block outlives a whole step, or without steps the recording.
func (c *Context) kept(b *blocks.Block) bool {
	if b.Died == blocks.Alive {
		return true
	}
	from, _ := slices.BinarySearch(c.StepsNS, b.BornNS)
	to, _ := slices.BinarySearch(c.StepsNS, b.DiedNS)
	return to-from >= 2
}

// early: a block was there before the first step.
func (c *Context) early(b *blocks.Block) bool {
	return b.Born == 0 || len(c.StepsNS) > 0 && b.BornNS < c.StepsNS[0]
}

// Phases of a block, as far as they can be guessed.
const (
	Weights        = "weights"
	Activations    = "activations"
	Gradients      = "gradients"
	OptimizerState = "optimizer state"
	Workspace      = "workspace"
	Other          = "other"
)

// around calls visit for a span and all those around it, until visit says stop.
func (c *Context) around(id int64, visit func(id int64, s Span) bool) {
	for depth := 0; id != 0 && depth < 1000; depth++ {
		s, is := c.Spans[id]
		if !is || !visit(id, s) {
			return
		}
		id = s.Parent
	}
}

// node is the autograd node around a span.
func (c *Context) node(id int64) (node Span, is bool) {
	c.around(id, func(_ int64, s Span) bool {
		if s.Layer == "autograd" && s.Name != "Engine::execute" {
			node, is = s, true
		}
		return !is
	})
	return node, is
}

// inBackward reports whether a span belongs to a backward pass.
func (c *Context) inBackward(id int64) (is bool) {
	c.around(id, func(_ int64, s Span) bool {
		is = s.Layer == "autograd"
		return !is
	})
	return is
}

// inOptimizer reports whether a block was born in an optimizer's step.
func (c *Context) inOptimizer(b *blocks.Block) (is bool) {
	if c.Paths[b.Path].within("/optim/", "") {
		return true
	}
	c.around(b.BornIn, func(_ int64, s Span) bool {
		is = s.Layer == "scope" && strings.HasPrefix(s.Name, "Optimizer.step")
		return !is
	})
	return is
}

// Phase guesses what a block is for, from who made it, who freed it and when.
func (c *Context) Phase(b *blocks.Block) string {
	kept := c.kept(b)
	switch {
	case b.BornIn != 0 && b.BornIn == b.DiedIn && !kept:
		return Workspace
	case c.inOptimizer(b) && kept:
		return OptimizerState
	case c.inOptimizer(b):
		return Workspace
	case c.inBackward(b.BornIn):
		return Gradients
	case b.Born == 0, c.early(b) && kept:
		return Weights
	case c.Paths[b.Path].within("/nn/modules/", "__init__"), c.Paths[b.Path].within("/nn/", "reset_parameters"):
		return Weights
	case kept:
		return Other
	case c.inBackward(b.DiedIn), c.Paths[b.Path].within("", ".forward"):
		return Activations
	}
	return Other
}

// Line is where a block comes from: for one made in a backward pass, the line of
// the forward operator that the pass goes back through.
func (c *Context) Line(b *blocks.Block) string {
	if node, is := c.node(b.BornIn); is && node.Forward != 0 {
		if line := c.Paths[c.Spans[node.Forward].Path].Line(); line != "" {
			return line
		}
	}
	if line := c.Paths[b.Path].Line(); line != "" {
		return line
	}
	line := ""
	c.around(b.BornIn, func(_ int64, s Span) bool {
		line = c.Paths[s.Path].Line()
		return line == ""
	})
	switch {
	case line != "":
		return line
	case b.Born == 0:
		return "(before the recording)"
	}
	if made := c.Operator(b); made != noOperator {
		return "(no line recorded, in " + made + ")"
	}
	return "(no line recorded)"
}

// Module is the modules that a block was made in.
func (c *Context) Module(b *blocks.Block) string {
	path := c.Paths[b.Path]
	if node, is := c.node(b.BornIn); is && node.Forward != 0 {
		path = c.Paths[c.Spans[node.Forward].Path]
	}
	if m := path.Module(); m != "" {
		return m
	}
	return "(in no module)"
}

const noOperator = "(in no operator)"

// Operator is the autograd node, else the outermost operator, that made a block.
func (c *Context) Operator(b *blocks.Block) string {
	if node, is := c.node(b.BornIn); is {
		return node.Name
	}
	name := ""
	c.around(b.BornIn, func(_ int64, s Span) bool {
		if s.Layer == "op" {
			name = s.Name
		}
		return true
	})
	if name == "" {
		for _, f := range c.Paths[b.Path] {
			if f.Kind == "op" {
				name = f.Function // the last one is the outermost
			}
		}
	}
	if name == "" {
		return noOperator
	}
	return name
}
