package analysis

import "github.com/ebpfprof/ebpfprof/internal/model/calltree"

// Kind of a Context.
type Kind = string

// The kinds, in the order in which they stand in a path.
const (
	Root     Kind = "root"
	Python   Kind = "python"   // Name is the function, File and Line its line
	Operator Kind = "op"       // of the framework
	Backward Kind = "autograd" // a node of a backward pass, below its forward operator where that is known
	Native   Kind = "native"   // Name is the function, File the module and its build id
	Call     Kind = "call"     // into a runtime or a collective library
	Kernel   Kind = "kernel"   // on a device
)

// The metrics.
const (
	DeviceNS = "device_ns" // time on a device, ns
	HostNS   = "host_ns"   // own time of operators and calls on the host, ns
	CPUNS    = "cpu_ns"    // on the CPU, by samples, ns
	WaitNS   = "wait_ns"   // off the CPU, ns
	Bytes    = "bytes"     // allocated
)

// Metric is what is known of a set of values. A row of a slice counts as often as its weight
// says: Count and Sum are estimates then.
type Metric struct {
	Count, Sum, Min, Max, Mean float64
	Stddev                     float64 // of the sample; 0 below two values
}

// Context is a place in the tree of who called whom. It is read only.
type Context struct {
	Kind Kind
	Name string
	File string // "" where the kind has none
	Line int    // 0 likewise

	node      *calltree.Node
	parent    *Context
	inclusive func(metric string) map[*calltree.Node]float64
}

// Parent is the caller, nil of the root.
func (c *Context) Parent() *Context { return c.parent }

// Path leads from the outermost caller to the context, without the root.
func (c *Context) Path() (path []*Context) {
	if c.parent == nil {
		return nil
	}
	return append(c.parent.Path(), c)
}

// Own is a metric of the context without what it called; all zero where it has none.
func (c *Context) Own(metric string) Metric {
	m := c.node.Own[metric]
	if m == nil {
		return Metric{}
	}
	return Metric{m.Count, m.Sum, m.Min, m.Max, m.Mean, m.Stddev()}
}

// Total is a metric's sum over the context and all that it called.
func (c *Context) Total(metric string) float64 { return c.inclusive(metric)[c.node] }

// Callees are called by the context, the one with the largest Total of the metric first.
func (c *Context) Callees(metric string) (all []*Context) {
	for _, n := range c.node.Children(c.inclusive(metric)) {
		all = append(all, c.of(n))
	}
	return all
}

// All are the context and what it called, callers before callees, until the caller stops.
func (c *Context) All(metric string) func(yield func(*Context) bool) {
	return func(yield func(*Context) bool) { c.walk(metric, yield) }
}

func (c *Context) walk(metric string, yield func(*Context) bool) bool {
	if !yield(c) {
		return false
	}
	for _, callee := range c.Callees(metric) {
		if !callee.walk(metric, yield) {
			return false
		}
	}
	return true
}

func (c *Context) of(n *calltree.Node) *Context {
	return &Context{Kind(n.Kind), n.Name, n.File, int(n.Line), n, c, c.inclusive}
}

// contexts wraps a tree. Totals are added up once for each metric.
func contexts(root *calltree.Node) *Context {
	totals := map[string]map[*calltree.Node]float64{}
	c := &Context{Kind: Root, node: root}
	c.inclusive = func(metric string) map[*calltree.Node]float64 {
		if totals[metric] == nil {
			totals[metric] = root.Inclusive(metric)
		}
		return totals[metric]
	}
	return c
}
