package timeline

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/ebpfprof/ebpfprof/internal/dataset"
	"github.com/ebpfprof/ebpfprof/internal/model/graph"
	"github.com/ebpfprof/ebpfprof/internal/model/steps"
)

// CriticalPath is what kept a step from ending earlier.
type CriticalPath struct {
	PID      int        `json:"pid"`
	Rank     *int       `json:"rank"`
	Kind     steps.Kind `json:"kind"`
	Number   int        `json:"step"`
	Of       string     `json:"of"` // what it is of: a step, a scope, the recording
	BeginNS  int64      `json:"begin_ns"`
	PeriodMS float64    `json:"period_ms"`
	PathMS   float64    `json:"path_ms"` // begin of the step to the last end, device included
	Whole    bool       `json:"whole"`
	// HostMS, DeviceMS and BetweenMS add up to PathMS: in calls, on a device,
	// between calls (the interpreter).
	HostMS    float64 `json:"host_ms"`
	DeviceMS  float64 `json:"device_ms"`
	BetweenMS float64 `json:"between_ms"`
	// BoundBy divides the path by what it waited for.
	BoundBy BoundBy `json:"bound_by"`
	// HiddenDeviceMS is work on devices that is not on the path.
	HiddenDeviceMS float64       `json:"hidden_device_ms"`
	Parts          []PathPart    `json:"parts"`    // the most exposed time first
	Segments       []PathSegment `json:"segments"` // in order of time
	// DroppedEdges contradicted the measured times.
	DroppedEdges int `json:"dropped_edges"`
	// Ranks are those that the path goes through, where it is of several: the one that it is in
	// longest first.
	Ranks  []PathRank `json:"ranks"`
	Method string     `json:"method"` // what the graph was made of
	// PathBounds are there where only bounds of device times are known; all else is of the
	// least time then.
	*PathBounds

	most *CriticalPath // the path at the other end
}

// BoundBy divides the path, in milliseconds, into what HTA's users know: on the
// CPU (in calls and between them), in kernels, in collectives, in copies and sets,
// between two pieces of work of a stream, between work of another stream that was waited for
// and what it held up (which HTA counts nowhere), and between a launch and its work.
type BoundBy struct {
	CPU float64 `json:"cpu_ms"`
	// InCalls of it are in operators and calls that do not synchronise (HTA's cpu_bound), InWaits
	// in calls that do, after what they waited for; the rest lies between calls and in scopes.
	InCalls       float64 `json:"cpu_in_calls_ms"`
	InWaits       float64 `json:"cpu_in_waits_ms"`
	Compute       float64 `json:"gpu_compute_ms"`
	Communication float64 `json:"gpu_communication_ms"`
	Copies        float64 `json:"gpu_copy_ms"`
	KernelKernel  float64 `json:"gpu_kernel_kernel_overhead_ms"`
	StreamWait    float64 `json:"gpu_stream_wait_overhead_ms"`
	KernelLaunch  float64 `json:"gpu_kernel_launch_overhead_ms"`
}

// followed is what a stretch of the path stands after.
type followed int

const (
	theHost followed = iota
	sameStream
	otherStream
)

// add counts a stretch of the path, with the category of a device's work or of a call of the
// runtime, else the layer; gap of it lay before its node began, after what stands in after.
func (b *BoundBy) add(where, category string, ms, gap float64, after followed) {
	if where != "device" {
		b.CPU += ms
		switch {
		case where == "host" && category == "sync":
			b.InWaits += ms
		case where == "host" && category != "scope":
			b.InCalls += ms
		}
		return
	}
	switch after {
	case sameStream:
		b.KernelKernel += gap
	case otherStream:
		b.StreamWait += gap
	default:
		b.KernelLaunch += gap
	}
	switch category {
	case "collective":
		b.Communication += ms - gap
	case "copy", "set":
		b.Copies += ms - gap
	default:
		b.Compute += ms - gap
	}
}

// PathPart adds up the segments of one name.
type PathPart struct {
	Where     string  `json:"where"` // host, device, between
	Layer     string  `json:"layer"`
	Name      string  `json:"name"`
	ExposedMS float64 `json:"exposed_ms"`
	HiddenMS  float64 `json:"hidden_ms"`
	Percent   float64 `json:"percent"` // of the path
	*PartBounds
}

// PathSegment is a stretch of the path.
type PathSegment struct {
	Where  string  `json:"where"`
	Layer  string  `json:"layer"`
	Name   string  `json:"name"`
	Rank   *int    `json:"rank"` // whose it is
	SpanID *int64  `json:"span_id"`
	FromMS float64 `json:"from_ms"` // since the step's begin
	MS     float64 `json:"ms"`
}

// Choose finds the step to look at: the training step of that number, or with -1
// the one of median period among those that are whole, of those with points in time of devices where some have these.
func Choose(threads []Thread, number int) (Thread, Step, error) {
	for _, t := range threads {
		candidates := t.Of(steps.Train, steps.Warmup)
		if len(candidates) == 0 {
			candidates = t.Of(steps.Evaluate)
		}
		if number >= 0 {
			for _, s := range candidates {
				if s.Number == number {
					return t, s, nil
				}
			}
			if len(candidates) > 0 {
				return t, Step{}, fmt.Errorf("there is no step %d: process %d has steps 0 to %d", number, t.PID,
					len(candidates)-1)
			}
			continue
		}
		whole := slices.DeleteFunc(slices.Clone(candidates), func(s Step) bool {
			return !s.Whole || s.Period < 0 || s.Kind == steps.Warmup
		})
		if len(whole) == 0 {
			whole = slices.DeleteFunc(candidates, func(s Step) bool { return s.Period < 0 })
		}
		if exact := slices.DeleteFunc(slices.Clone(whole), func(s Step) bool { return !s.Exact }); len(exact) > 0 {
			whole = exact // they have the work of devices, the others its bounds at most
		}
		if len(whole) > 0 {
			slices.SortFunc(whole, func(a, b Step) int { return cmp.Compare(a.Period, b.Period) })
			return t, whole[len(whole)/2], nil
		}
	}
	return Thread{}, Step{}, fmt.Errorf("no steps were found: ebpfprof steps says what is missing")
}

// Path is the critical path of a step.
func Path(ctx context.Context, db *dataset.DB, t Thread, s Step) (*CriticalPath, error) {
	g, err := graphOf(ctx, db, t, s)
	if err != nil {
		return nil, err
	}
	p := g[Least].path(t)
	if g[Most] != nil {
		p.between(g[Most].path(t))
	}
	return p.of(s), nil
}

// graphOf is the graph of one step: where only bounds of device times are known, at both ends,
// else the second one is nil.
func graphOf(ctx context.Context, db *dataset.DB, t Thread, s Step) (g [2]*StepGraph, err error) {
	spans, err := Launched(ctx, db, t, s)
	if err != nil {
		return g, err
	}
	if g[Least], err = NewStepGraph(t, s, spans); err != nil || !g[Least].Bounded() {
		return g, err
	}
	g[Most], err = NewStepGraphAt(t, s, spans, Most)
	return g, err
}

// of names the path by its step.
func (p *CriticalPath) of(s Step) *CriticalPath {
	p.Of = cmp.Or(s.Name, fmt.Sprintf("step %d", s.Number))
	return p
}

func (g *StepGraph) path(t Thread) *CriticalPath {
	run := g.Graph.Replay(g.Times)
	p := &CriticalPath{PID: t.PID, Rank: t.Rank, Kind: g.Step.Kind, Number: g.Step.Number, BeginNS: g.Step.Begin,
		PeriodMS: ms(float64(g.Step.Period)), Whole: g.Step.Whole, Method: g.method()}
	p.fill(g.Graph, run, func(node int) (*StepGraph, int, *int) { return g, node, t.Rank })
	return p
}

// fill goes back along the path of a run; at says whose a node is.
func (p *CriticalPath) fill(all *graph.Graph, run graph.Run, at func(node int) (*StepGraph, int, *int)) {
	p.PathMS, p.DroppedEdges, p.Parts, p.Segments = ms(run.Last()), all.Dropped(), []PathPart{}, []PathSegment{}
	exposed, gaps := make([]float64, all.Len()), make([]float64, all.Len())
	path := all.CriticalPath(run)
	if len(path) > 0 {
		path[0].From = 0 // what came before the first node began is its latency
	}
	for i, s := range path {
		g, n, rank := at(s.Node)
		exposed[s.Node] += s.To - s.From
		where, layer, name := g.describe(n)
		gap := max(min(run.Start[s.Node], s.To)-s.From, 0)
		if where == "device" {
			gaps[s.Node] += gap
		}
		category := layer
		if span := g.Segments[n].Span; layer == "runtime" && span >= 0 {
			category = g.Spans[span].Category
		}
		p.BoundBy.add(where, category, ms(s.To-s.From), ms(gap), follows(all, path, i, at))
		segment := PathSegment{Where: where, Layer: layer, Name: name, Rank: rank, FromMS: ms(s.From), MS: ms(s.To - s.From)}
		if span := g.Segments[n].Span; span >= 0 {
			id := g.Spans[span].ID
			id = max(id, -id) // of work with bounds, the call's
			segment.SpanID = &id
		}
		p.Segments = append(p.Segments, segment)
	}
	parts := map[[3]string]*PathPart{}
	for node := range all.Len() {
		g, n, _ := at(node)
		s := g.Segments[n]
		where, layer, name := g.describe(n)
		hidden := max(float64(s.To-s.From)-exposed[node], 0)
		of := partOf(parts, where, layer, name)
		of.ExposedMS, of.HiddenMS = of.ExposedMS+ms(exposed[node]-gaps[node]), of.HiddenMS+ms(hidden)
		if gaps[node] > 0 { // it is no time of the kernel that began after it
			partOf(parts, where, "", "waiting for its work to begin (launches, gaps)").ExposedMS += ms(gaps[node])
		}
		switch where {
		case "host":
			p.HostMS += ms(exposed[node])
		case "device":
			p.DeviceMS, p.HiddenDeviceMS = p.DeviceMS+ms(exposed[node]), p.HiddenDeviceMS+ms(hidden)
		default:
			p.BetweenMS += ms(exposed[node])
		}
	}
	for _, part := range parts {
		if p.PathMS > 0 {
			part.Percent = 100 * part.ExposedMS / p.PathMS
		}
		p.Parts = append(p.Parts, *part)
	}
	slices.SortFunc(p.Parts, func(a, b PathPart) int {
		return cmp.Or(cmp.Compare(b.ExposedMS, a.ExposedMS), cmp.Compare(b.HiddenMS, a.HiddenMS), cmp.Compare(a.Name, b.Name))
	})
}

// follows says what the i-th stretch of a path stands after.
func follows(all *graph.Graph, path []graph.Segment, i int, at func(node int) (*StepGraph, int, *int)) followed {
	if i == 0 {
		return theHost
	}
	before := path[i-1].Node
	switch g, n, _ := at(before); {
	case !g.Segments[n].Device:
		return theHost
	case all.Node(before).Lane == all.Node(path[i].Node).Lane:
		return sameStream
	}
	return otherStream
}

// partOf is the part of that name, made where there is none.
func partOf(parts map[[3]string]*PathPart, where, layer, name string) *PathPart {
	key := [3]string{where, layer, name}
	if parts[key] == nil {
		parts[key] = &PathPart{Where: where, Layer: layer, Name: name}
	}
	return parts[key]
}

func ms(ns float64) float64 { return ns / 1e6 }

func (g *StepGraph) method() string {
	if g.Bounded() {
		return "host, and devices by the bounds of their times"
	}
	for _, s := range g.Segments {
		if s.Device {
			return "host and device"
		}
	}
	return "host only: the dataset has no points in time of work on devices"
}

func (g *StepGraph) describe(node int) (where, layer, name string) {
	s := g.Segments[node]
	switch {
	case s.Span < 0:
		return "between", "", "between calls (the interpreter)"
	case s.Device:
		return "device", g.Spans[s.Span].Category, g.Spans[s.Span].Name
	case g.Spans[s.Span].Layer == "scope" && strings.HasPrefix(g.Spans[s.Span].Name, "ProfilerStep#"):
		// The profiler's mark lies around the whole step, and does nothing itself.
		return "between", "", "host time in no operator (the interpreter), in " + g.Spans[s.Span].Name
	}
	return "host", g.Spans[s.Span].Layer, g.Spans[s.Span].Name
}

// Verdict is the answer in one sentence.
func (p *CriticalPath) Verdict() string {
	if p.most != nil && p.keeps() != p.most.keeps() {
		return fmt.Sprintf("%s of %s: what keeps it is not known, for device times have only bounds; with the least of them it is what happens "+
			"%s (%.0f %% of its critical path), with the most %s (%.0f %%).",
			p.subject(), ranging(p.PathMS, p.most.PathMS), p.keeps(), p.share(), p.most.keeps(), p.most.share())
	}
	most, share := "", fmt.Sprintf("%.0f", p.share())
	if len(p.Parts) > 0 && p.Parts[0].Where != "between" {
		most = fmt.Sprintf("; the longest part is %s (%.0f %%)", p.Parts[0].Name, p.Parts[0].Percent)
	}
	path := milliseconds(p.PathMS)
	if p.most != nil {
		low, high := min(p.share(), p.most.share()), max(p.share(), p.most.share())
		most, path = "", ranging(p.PathMS, p.most.PathMS)
		if share = fmt.Sprintf("%.0f", low); share != fmt.Sprintf("%.0f", high) {
			share += fmt.Sprintf(" to %.0f", high)
		}
	}
	return fmt.Sprintf("%s of %s is kept by what happens %s (%s %% of its critical path)%s.", p.subject(), path, p.keeps(), share, most)
}

func (p *CriticalPath) subject() string {
	if p.Kind != "" {
		return fmt.Sprintf("%s step %d", strings.ToUpper(string(p.Kind[:1]))+string(p.Kind[1:]), p.Number)
	}
	return strings.ToUpper(p.Of[:min(len(p.Of), 1)]) + p.Of[min(len(p.Of), 1):]
}

// keeps is where most of the path lies, and share how much of it in percent.
func (p *CriticalPath) keeps() string {
	switch max(p.HostMS, p.DeviceMS, p.BetweenMS) {
	case p.DeviceMS:
		return "on the device"
	case p.BetweenMS:
		return "between calls, in the interpreter"
	}
	return "in calls on the host"
}

func (p *CriticalPath) share() float64 {
	return 100 * max(p.HostMS, p.DeviceMS, p.BetweenMS) / max(p.PathMS, 1e-9)
}
