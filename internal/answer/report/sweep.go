package report

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ebpfprof/ebpfprof/internal/dataset"
	"github.com/ebpfprof/ebpfprof/internal/model/calltree"
)

// sweep goes over all host rows once, in order of time: what is added up of operators
// and of the stacks that call them. A join of rows with their parents takes ten times
// as long, and the memory of all of them.
type sweep struct {
	operators []*hosted
	byName    map[string]*hosted
	// known are the operators by the numbers of their names, without and with the
	// prefix of imported backward nodes.
	known   [2][]*hosted
	epoch   int
	threads map[sweptThread]*[]opened
	stacks  map[sweptStack]float64 // ns of outermost operators

	// Of rows that were recorded in slices: exclusive times, by where operators stand in each other.
	slices *calltree.Slices // nil where nothing was, or too much
	price  float64          // of a probe's hit, ns
	noted  int              // steps of slices that are remembered
	paths  []sweptPath      // the first is outside of all operators
	pathOf map[uint64]int32 // by the path around it and the operator
	groups map[string]*calltree.Sum
}

// sweptPath is an operator in those around it.
type sweptPath struct {
	around int32
	of     *hosted
	selfNS float64
}

type hosted struct {
	Operator
	totalNS, selfNS, flops, causal, bytes float64
	computes, masks, moves                bool // some row says so
	index                                 int
	own                                   calltree.Sum
}

type (
	sweptThread struct {
		session  string
		pid, tid int64
	}
	sweptStack struct {
		session string
		id      int64
	}
)

// opened is a row that may have others inside it.
type opened struct {
	id, end  int64
	parent   int64 // dataset.Absent is none
	operates bool  // an operator or a backward node
	of       *hosted
	duration int64
	inside   int64 // of the rows directly in it
	inner    int   // how many these are
	weight   float64
	path     int32
	slice    *calltree.Slice
	step     int32
}

// The columns of the scan.
const (
	sweptTime = iota
	sweptDuration
	sweptLayer
	sweptCategory
	sweptName
	sweptEnd
	sweptWeight
	sweptFLOPs
	sweptCausal
	sweptBytes
	sweptID
	sweptParent
	sweptPID
	sweptTID
	sweptSession
	sweptPython
	sweptNative
	sweptSlice // where there are slices
	sweptStep
)

var sweptColumns = []string{"ts_ns", "duration_ns", "layer", "category", "name", "end_method", "weight", "flops", "flops_causal",
	"bytes_moved", "span_id", "parent_id",
	"pid", "tid", "session_id", "python_stack_id", "stack_id"}

func (b *builder) sweep() (*sweep, error) {
	s := &sweep{byName: map[string]*hosted{}, threads: map[sweptThread]*[]opened{}, stacks: map[sweptStack]float64{},
		paths: make([]sweptPath, 1), pathOf: map[uint64]int32{}, groups: map[string]*calltree.Sum{}}
	scan := b.part
	scan.Table, scan.Columns = "span", sweptColumns
	if err := s.readSlices(b); err != nil {
		return nil, err
	}
	if s.slices != nil {
		scan.Columns = append(slices.Clone(sweptColumns), "slice_id", "slice_step")
	}
	scan.Before = func(b *dataset.Batch, i, k int) bool {
		if x, y := b.Columns[sweptDuration][i], b.Columns[sweptDuration][k]; x != y {
			return x == dataset.Absent || y != dataset.Absent && x > y
		}
		return b.Columns[sweptID][i] < b.Columns[sweptID][k]
	}
	if err := b.db.Scan(b.ctx, scan, s.batch); err != nil {
		return nil, err
	}
	for _, open := range s.threads {
		for i := range *open {
			s.close(&(*open)[i])
		}
	}
	return s, nil
}

func (s *sweep) batch(b *dataset.Batch) error {
	if b.Epoch != s.epoch {
		s.known, s.epoch = [2][]*hosted{}, b.Epoch
	}
	c := b.Columns
	var open *[]opened
	last := [3]int64{dataset.Absent}
	for i := range b.Rows {
		layer := b.Text(c[sweptLayer][i])
		if layer == "device" {
			continue
		}
		if now := [3]int64{c[sweptSession][i], c[sweptPID][i], c[sweptTID][i]}; now != last {
			key := sweptThread{b.Text(now[0]), now[1], now[2]}
			if open = s.threads[key]; open == nil {
				open = new([]opened)
				s.threads[key] = open
			}
			last = now
		}
		s.row(b, i, layer, open)
	}
	return nil
}

func (s *sweep) row(b *dataset.Batch, i int, layer string, open *[]opened) {
	c := b.Columns
	begin, duration := c[sweptTime][i], c[sweptDuration][i]
	s.closeUntil(open, begin)
	o := opened{id: c[sweptID][i], end: 1<<63 - 1, parent: c[sweptParent][i], operates: layer == "op" || layer == "autograd",
		duration: duration, weight: b.Float(c[sweptWeight][i])}
	if duration != dataset.Absent {
		o.end = begin + duration
	}
	inOperator := false
	if parent := c[sweptParent][i]; parent != dataset.Absent {
		for k := len(*open) - 1; k >= 0; k-- {
			if p := &(*open)[k]; p.id == parent {
				p.inside += max(duration, 0)
				p.inner++
				inOperator, o.path = p.operates, p.path
				break
			}
		}
	}
	if layer == "op" && !inOperator && duration > 0 {
		stack := c[sweptPython][i]
		if stack == dataset.Absent {
			stack = c[sweptNative][i]
		}
		if stack != dataset.Absent {
			s.stacks[sweptStack{b.Text(c[sweptSession][i]), stack}] += float64(duration) * o.weight
		}
	}
	if layer == "op" || layer == "collective" || layer == "autograd" && b.Text(c[sweptCategory][i]) != "backward" {
		o.of = s.operator(b, i, layer)
		o.of.add(b, i, &o, o.of.covered(*open, &o, begin))
		s.locate(b, i, &o)
	}
	*open = append(*open, o)
}

// operator is what is added up under the row's name. In traces of torch.profiler a
// backward node has its own operator of the same name in it, so that it is called here
// what it is called in the trace.
func (s *sweep) operator(b *dataset.Batch, i int, layer string) *hosted {
	known, prefix := &s.known[0], ""
	if layer == "autograd" && b.Text(b.Columns[sweptEnd][i]) == "imported" {
		known, prefix = &s.known[1], "autograd::engine::evaluate_function: "
	}
	number := b.Columns[sweptName][i]
	if int64(len(*known)) <= number {
		*known = append(*known, make([]*hosted, b.Texts()-len(*known))...)
	}
	if h := (*known)[number]; h != nil {
		return h
	}
	name := prefix + b.Text(number)
	h := s.byName[name]
	if h == nil {
		h = &hosted{Operator: Operator{Name: name, Layer: layer}, index: len(s.operators)}
		s.byName[name] = h
		s.operators = append(s.operators, h)
	}
	(*known)[number] = h
	return h
}

// covered is how much of a call lies in a call of the same operator around it, which has its time already.
func (h *hosted) covered(open []opened, o *opened, begin int64) int64 {
	parent := o.parent
	for k := len(open) - 1; k >= 0 && parent != dataset.Absent; k-- {
		around := &open[k]
		if around.id != parent {
			continue
		}
		if around.of == h && around.duration != dataset.Absent {
			return max(0, min(around.end-begin, o.duration))
		}
		parent = around.parent
	}
	return 0
}

func (h *hosted) add(b *dataset.Batch, i int, o *opened, covered int64) {
	h.Calls += o.weight
	h.Estimated = h.Estimated || o.weight > 1
	if o.duration != dataset.Absent {
		h.totalNS += float64(o.duration-covered) * o.weight
	}
	if v := b.Columns[sweptFLOPs][i]; v != dataset.Absent {
		h.flops, h.computes = h.flops+float64(v)*o.weight, true
		if half := b.Columns[sweptCausal][i]; half != dataset.Absent {
			v, h.masks = half, true
		}
		h.causal += float64(v) * o.weight
	}
	if v := b.Columns[sweptBytes][i]; v != dataset.Absent {
		h.bytes, h.moves = h.bytes+float64(v)*o.weight, true
	}
}

func (s *sweep) close(o *opened) {
	if o.of == nil || o.duration <= o.inside {
		return
	}
	self := float64(o.duration - o.inside)
	o.of.selfNS += self * o.weight
	s.noteOwn(o, self)
}

// mostOpened is how deep rows stand in each other, about; more are such as follow one
// another without a gap.
const mostOpened = 256

// closeUntil closes the rows that have ended before a time. What ends at that very time
// may still have a row in it that begins then.
func (s *sweep) closeUntil(open *[]opened, t int64) {
	n := len(*open)
	for n > 0 && (*open)[n-1].end < t {
		s.close(&(*open)[n-1])
		n--
	}
	*open = (*open)[:n]
	if n < mostOpened {
		return
	}
	*open = slices.DeleteFunc(*open, func(o opened) bool {
		if o.end < t {
			s.close(&o)
			return true
		}
		return false
	})
}

// keep brings what stacks have into the table hosted_stack.
func (s *sweep) keep(b *builder) error {
	if err := b.db.Exec(b.ctx, "CREATE OR REPLACE TEMP TABLE hosted_stack (session_id VARCHAR, stack_id BIGINT, ns DOUBLE)"); err != nil {
		return err
	}
	var values []string
	flush := func() error {
		if len(values) == 0 {
			return nil
		}
		err := b.db.Exec(b.ctx, "INSERT INTO hosted_stack VALUES "+strings.Join(values, ","))
		values = values[:0]
		return err
	}
	for key, ns := range s.stacks {
		values = append(values, fmt.Sprintf("('%s',%d,%v)", strings.ReplaceAll(key.session, "'", "''"), key.id, ns))
		if len(values) == 2000 {
			if err := flush(); err != nil {
				return err
			}
		}
	}
	return flush()
}
