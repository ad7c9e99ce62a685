package scripted

import (
	"errors"
	"fmt"

	"github.com/ebpfprof/ebpfprof/output"
	"github.com/ebpfprof/ebpfprof/tracer/event"
)

// spansAStep is how many spans a step of a synthetic dataset has, about.
const spansAStep = 1000

// Synthetic writes a made-up dataset of about so many spans into dir, for measuring how
// long analyses take: one process whose steps have a load, operators with two inside
// each, a backward pass of as many nodes (with an edge each), and an optimizer, with a
// sample a millisecond.
// It is what a recording looks like and no recording; its session says so.
func Synthetic(dir string, spans int) (err error) {
	d, err := output.Create(dir, output.Options{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.Close()) }()
	framework := "pytorch"
	s := synthetic{d: d, now: 1_700_000_000_000_000_000, calls: map[event.Call]*event.Call{}}
	err = errors.Join(
		d.Session(event.Recording{ID: "synthetic", StartedNS: s.now, Source: "synthetic"}),
		d.Write(&event.Batch{
			Processes: []event.Process{{ID: 1, PID: 100, StartedNS: s.now, Framework: &framework, Command: "synthetic"}},
			Threads:   []event.Thread{{PID: 100, TID: 100, Name: "synthetic"}},
		}))
	for line := range int64(200) {
		frames := []event.Frame{{Kind: "python", Function: fmt.Sprintf("f%d", line), File: "/home/me/model.py", Line: int32(line) + 1},
			{Kind: "python", Function: "main", File: "/home/me/train.py", Line: 7}}
		err = errors.Join(err, d.Write(&event.Batch{Stacks: []event.Stack{{ID: line + 1, Frames: frames, Folded: "main;" + frames[0].Function,
			Status: event.StackComplete}}}))
	}
	for step := 0; err == nil && step*spansAStep < spans; step++ {
		err = s.step()
	}
	return err
}

type synthetic struct {
	d       *output.Dataset
	now, id int64
	number  int64 // autograd's
	calls   map[event.Call]*event.Call
	spans   []event.Span
	samples []event.Sample
	flows   []event.Flow
}

func (s *synthetic) add(call event.Call, parent, begin, duration, sequence int64) int64 {
	known := s.calls[call]
	if known == nil {
		kept := call
		known, s.calls[call] = &kept, &kept
	}
	s.id++
	s.spans = append(s.spans, event.Span{ID: s.id, ParentID: parent, StartNS: begin, DurationNS: duration, PID: 100, TID: 100, Call: known,
		End:    event.EndNextEntry,
		Weight: 1, SequenceNumber: sequence, PythonStackID: s.id%200 + 1, PythonStackSource: event.LineOwn})
	return s.id
}

func (s *synthetic) step() error {
	begin := s.now
	s.add(event.Call{Layer: "scope", Name: "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"}, 0, s.now, 200_000, -1)
	s.now += 200_000
	first := s.number
	var forward [180]int64
	for i := range forward {
		outer := s.add(event.Call{Layer: "op", Name: fmt.Sprintf("aten::op%d", i%60)}, 0, s.now, 30_000, s.number)
		s.number++
		forward[i] = outer
		for k := range int64(2) {
			s.add(event.Call{Layer: "op", Name: fmt.Sprintf("aten::inner%d", i%30)}, outer, s.now+5_000+k*10_000, 8_000, -1)
		}
		s.now += 32_000
	}
	pass := s.add(event.Call{Layer: "autograd", Category: "backward", Name: "Engine::execute"}, 0, s.now, 180*40_000+10_000, -1)
	s.now += 5_000
	for i := range int64(180) {
		node := s.add(event.Call{Layer: "autograd", Category: "node", Name: fmt.Sprintf("Op%dBackward0", (179-i)%60)}, pass, s.now, 38_000,
			first+179-i)
		s.flows = append(s.flows, event.Flow{TSNS: s.now, FromSpanID: forward[179-i], ToSpanID: node, Kind: "forward_backward",
			Method: "sequence_number"})
		s.add(event.Call{Layer: "op", Name: fmt.Sprintf("aten::inner%d", i%30)}, node, s.now+5_000, 25_000, -1)
		s.now += 40_000
	}
	s.now += 5_000
	outer := s.add(event.Call{Layer: "scope", Name: "Optimizer.step#SGD.step"}, 0, s.now, 400_000, -1)
	for k := range int64(90) {
		s.add(event.Call{Layer: "op", Name: "aten::add_"}, outer, s.now+k*4_000, 3_000, -1)
	}
	s.now += 450_000
	for at := begin; at < s.now; at += 1_000_000 {
		stack := at/1000%200 + 1
		s.samples = append(s.samples, event.Sample{TSNS: at, PID: 100, TID: 100, State: "on_cpu", WeightNS: 1_000_000, StackID: &stack})
	}
	err := s.d.Write(&event.Batch{Spans: s.spans, Samples: s.samples, Flows: s.flows})
	s.spans, s.samples, s.flows = s.spans[:0], s.samples[:0], s.flows[:0]
	return err
}
