package timeline

import "github.com/ebpfprof/ebpfprof/internal/dataset/derived"

type savedStep struct {
	t Thread
	s Step
}

func words(get func(*savedStep) string) func(*savedStep) (string, bool) {
	return func(s *savedStep) (string, bool) { return get(s), true }
}

func number(get func(*savedStep) int64) func(*savedStep) (int64, bool) {
	return func(s *savedStep) (int64, bool) { return get(s), true }
}

var stepColumns = []derived.Column[savedStep]{
	{Name: "step_id", Ints: number(func(s *savedStep) int64 { return s.s.ID })},
	{Name: "pid", Ints: number(func(s *savedStep) int64 { return int64(s.t.PID) })},
	{Name: "tid", Ints: number(func(s *savedStep) int64 { return int64(s.t.TID) })},
	{Name: "rank", Ints: func(s *savedStep) (int64, bool) {
		if s.t.Rank == nil {
			return 0, false
		}
		return int64(*s.t.Rank), true
	}},
	{Name: "number", Ints: number(func(s *savedStep) int64 { return int64(s.s.Number) })},
	{Name: "kind", Texts: words(func(s *savedStep) string { return string(s.s.Kind) })},
	{Name: "begin_ns", Ints: number(func(s *savedStep) int64 { return s.s.Begin })},
	{Name: "end_ns", Ints: number(func(s *savedStep) int64 { return s.s.End })},
	{Name: "period_ns", Ints: func(s *savedStep) (int64, bool) { return s.s.Period, s.s.Period >= 0 }},
	{Name: "whole", Bool: true, Ints: func(s *savedStep) (int64, bool) {
		if s.s.Whole {
			return 1, true
		}
		return 0, true
	}},
	{Name: "anchors", Texts: words(func(s *savedStep) string { return s.s.Anchors })},
	{Name: "method", Texts: words(func(s *savedStep) string { return string(s.s.Method) })},
	{Name: "analysis_version", Texts: words(func(*savedStep) string { return derived.Version })},
}

// Save writes table step of the dataset at root.
func Save(root string, threads []Thread) error {
	var rows []savedStep
	for _, t := range threads {
		for _, s := range t.Steps {
			rows = append(rows, savedStep{t, s})
		}
	}
	return derived.Write(root, "step", stepColumns, rows)
}
