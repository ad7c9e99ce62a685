package findings

import "github.com/ebpfprof/ebpfprof/internal/dataset/derived"

func words(get func(*Finding) string) func(*Finding) (string, bool) {
	return func(f *Finding) (string, bool) { return get(f), get(f) != "" }
}

func optional(get func(*Finding) *float64) func(*Finding) (float64, bool) {
	return func(f *Finding) (float64, bool) {
		if v := get(f); v != nil {
			return *v, true
		}
		return 0, false
	}
}

var columns = []derived.Column[Finding]{
	{Name: "rule", Texts: words(func(f *Finding) string { return f.Rule })},
	{Name: "severity", Texts: words(func(f *Finding) string { return string(f.Severity) })},
	{Name: "headroom_ms", Floats: optional(func(f *Finding) *float64 { return f.HeadroomMS })},
	{Name: "headroom_percent", Floats: optional(func(f *Finding) *float64 { return f.HeadroomPercent })},
	{Name: "lo_ms", Floats: optional(func(f *Finding) *float64 { return f.LowMS })},
	{Name: "hi_ms", Floats: optional(func(f *Finding) *float64 { return f.HighMS })},
	{Name: "from_steps", Ints: func(f *Finding) (int64, bool) {
		if f.FromSteps == nil {
			return 0, false
		}
		return int64(*f.FromSteps), true
	}},
	{Name: "window_percent", Floats: optional(func(f *Finding) *float64 { return f.WindowPercent })},
	{Name: "file", Texts: func(f *Finding) (string, bool) {
		if f.File == nil {
			return "", false
		}
		return *f.File, true
	}},
	{Name: "line", Ints: func(f *Finding) (int64, bool) {
		if f.Line == nil {
			return 0, false
		}
		return int64(*f.Line), true
	}},
	{Name: "name", Texts: words(func(f *Finding) string { return f.Name })},
	{Name: "advice", Texts: words(func(f *Finding) string { return f.Advice })},
	{Name: "evidence_sql", Texts: words(func(f *Finding) string { return f.EvidenceSQL })},
	{Name: "pid", Ints: func(f *Finding) (int64, bool) { return int64(f.PID), true }},
	{Name: "rank", Ints: func(f *Finding) (int64, bool) {
		if f.Rank == nil {
			return 0, false
		}
		return int64(*f.Rank), true
	}},
	{Name: "analysis_version", Texts: words(func(*Finding) string { return derived.Version })},
}

// Save writes table finding of the dataset at root.
func (r *Result) Save(root string) error { return derived.Write(root, "finding", columns, r.Findings) }
