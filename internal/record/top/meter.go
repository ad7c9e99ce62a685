// Package top adds up the samples of a running recording for the live view:
// what happened since the last look, and since the beginning.
package top

import (
	"cmp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/ebpfprof/ebpfprof/symbolize"
	"github.com/ebpfprof/ebpfprof/tracer"
	"github.com/ebpfprof/ebpfprof/tracer/event"
)

// Meter is the Sink of a recording that is looked at and not kept. Its methods
// are safe for concurrent use.
type Meter struct {
	options Options

	mu        sync.Mutex
	began     time.Time
	looked    time.Time
	stacks    map[int64]*calls  // by stack id
	distinct  map[string]*calls // by what the functions are: stacks differ in lines
	threads   map[int32]*thread
	functions map[function]*spent
	samples   uint64
	gilNS     int64
	activeNS  int64
	warnings  []string
}

// function is what times are added up by.
type function struct {
	kind  symbolize.Kind
	label string
}

// calls are the functions of one stack: the one that the time is spent in, and
// each that it is spent below, once.
type calls struct {
	own   function
	all   []function
	empty bool // the stack has no frames at all
}

type spent struct{ own, total, ownEver, totalEver int64 }

type thread struct {
	name        string
	active, gil int64
}

// Options say what a Meter shows.
type Options struct {
	// Native shows native and kernel functions too. Without it, time in native
	// code is that of the Python function that called it, as py-spy shows it.
	Native bool
	// ThreadName asks for the name of a thread that was not introduced; nil
	// where it is unknown.
	ThreadName func(pid, tid int32) string
}

// NewMeter begins to count now.
func NewMeter(o Options, now time.Time) *Meter {
	return &Meter{
		options: o, began: now, looked: now,
		stacks: map[int64]*calls{}, distinct: map[string]*calls{}, threads: map[int32]*thread{}, functions: map[function]*spent{},
	}
}

// Write implements event.Sink.
func (m *Meter) Write(b *event.Batch) error {
	for i := range b.Threads {
		m.addThread(b.Threads[i])
	}
	m.addStacks(b.Stacks)
	m.addSamples(b.Samples)
	for i := range b.Warnings {
		m.addWarning(b.Warnings[i])
	}
	return nil
}

func (m *Meter) addStacks(rows []tracer.Stack) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for i := range rows {
		m.stacks[rows[i].ID] = m.callsOf(rows[i].Frames)
	}
}

func (m *Meter) callsOf(frames []symbolize.Frame) *calls {
	c := &calls{empty: len(frames) == 0}
	var key strings.Builder
	for i := range frames {
		if kind := frames[i].Kind; !m.options.Native && kind != symbolize.Python {
			continue
		}
		f := function{frames[i].Kind, frames[i].Label()}
		if len(c.all) == 0 {
			c.own = f
		}
		if !slices.Contains(c.all, f) {
			c.all = append(c.all, f)
			key.WriteString(string(f.kind) + f.label + "\x00")
		}
	}
	if known := m.distinct[key.String()]; known != nil && known.empty == c.empty {
		return known
	}
	m.distinct[key.String()] = c
	return c
}

// addSamples takes samples. Waits are not shown: they come when they are
// over, all at once.
func (m *Meter) addSamples(rows []tracer.Sample) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for i := range rows {
		if s := &rows[i]; s.State == tracer.OnCPU {
			m.sample(s)
		}
	}
}

func (m *Meter) sample(s *tracer.Sample) {
	m.samples++
	m.activeNS += s.WeightNS
	t := m.thread(s.TID)
	if t.name == "" && m.options.ThreadName != nil {
		t.name = m.options.ThreadName(s.PID, s.TID)
	}
	t.active += s.WeightNS
	if s.HoldsGIL != nil && *s.HoldsGIL {
		m.gilNS += s.WeightNS
		t.gil += s.WeightNS
	}
	var c *calls
	if s.StackID != nil {
		c = m.stacks[*s.StackID]
	}
	if c == nil || len(c.all) == 0 {
		label := "[no stack]"
		if c != nil && !c.empty {
			label = "[no Python in thread " + t.name + "]"
		}
		c = &calls{own: function{label: label}, all: []function{{label: label}}}
	}
	for _, f := range c.all {
		x := m.functions[f]
		if x == nil {
			x = &spent{}
			m.functions[f] = x
		}
		x.total += s.WeightNS
		x.totalEver += s.WeightNS
		if f == c.own {
			x.own += s.WeightNS
			x.ownEver += s.WeightNS
		}
	}
}

func (m *Meter) thread(tid int32) *thread {
	t := m.threads[tid]
	if t == nil {
		t = &thread{}
		m.threads[tid] = t
	}
	return t
}

func (m *Meter) addThread(row tracer.Thread) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.thread(row.TID).name = row.Name
	if row.EndedNS != nil {
		delete(m.threads, row.TID)
	}
}

// addWarning keeps why there are no samples.
func (m *Meter) addWarning(row tracer.Warning) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if row.Source == "samples" {
		m.warnings = append(m.warnings, row.Detail)
	}
}

// View is what there is to see. Shares are of the time between two looks: 1 is
// one CPU, or one thread, for all of it.
type View struct {
	Elapsed   time.Duration // since the beginning
	Samples   uint64
	GIL       float64
	Active    float64
	Threads   []Thread   // the busiest first
	Functions []Function // in no order: Sort
	Warnings  []string
}

// Thread is one thread since the last look.
type Thread struct {
	TID         int32
	Name        string
	Active, GIL float64
}

// Function is one function: shares since the last look, times since the beginning.
type Function struct {
	Label              string
	Kind               symbolize.Kind
	Own, Total         float64
	OwnTime, TotalTime time.Duration
}

// Look returns what happened since the last look.
func (m *Meter) Look(now time.Time) View {
	m.mu.Lock()
	defer m.mu.Unlock()
	passed := max(now.Sub(m.looked), time.Millisecond)
	share := func(ns int64) float64 { return float64(ns) / float64(passed) }
	v := View{Elapsed: now.Sub(m.began), Samples: m.samples, GIL: share(m.gilNS), Active: share(m.activeNS), Warnings: m.warnings}
	for tid, t := range m.threads {
		v.Threads = append(v.Threads, Thread{tid, t.name, share(t.active), share(t.gil)})
		t.active, t.gil = 0, 0
	}
	slices.SortFunc(v.Threads, func(a, b Thread) int {
		return cmp.Or(cmp.Compare(b.Active, a.Active), cmp.Compare(a.TID, b.TID))
	})
	for f, x := range m.functions {
		v.Functions = append(v.Functions, Function{
			f.label, f.kind, share(x.own), share(x.total), time.Duration(x.ownEver), time.Duration(x.totalEver),
		})
		x.own, x.total = 0, 0
	}
	m.looked, m.gilNS, m.activeNS = now, 0, 0
	return v
}

// Reset forgets the times since the beginning, which is now.
func (m *Meter) Reset(now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.began, m.looked, m.samples, m.gilNS, m.activeNS = now, now, 0, 0, 0
	clear(m.functions)
	for _, t := range m.threads {
		t.active, t.gil = 0, 0
	}
}

// Order is what functions are sorted by.
type Order int

// The orders, by py-spy's keys 1 to 4.
const (
	ByOwn Order = iota + 1
	ByTotal
	ByOwnTime
	ByTotalTime
)

// Sort puts the functions with the most first.
func (v *View) Sort(by Order) {
	key := func(f *Function) (float64, float64) {
		switch by {
		case ByTotal:
			return f.Total, f.TotalTime.Seconds()
		case ByOwnTime:
			return f.OwnTime.Seconds(), f.Own
		case ByTotalTime:
			return f.TotalTime.Seconds(), f.Total
		}
		return f.Own, f.OwnTime.Seconds()
	}
	slices.SortFunc(v.Functions, func(a, b Function) int {
		a1, a2 := key(&a)
		b1, b2 := key(&b)
		return cmp.Or(cmp.Compare(b1, a1), cmp.Compare(b2, a2), cmp.Compare(b.Total, a.Total), cmp.Compare(a.Label, b.Label))
	})
}
