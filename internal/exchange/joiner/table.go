package joiner

import "github.com/ebpfprof/ebpfprof/internal/dataset/derived"

func texts(get func(*Clock) string) func(*Clock) (string, bool) {
	return func(c *Clock) (string, bool) { return get(c), get(c) != "" }
}

// known is a number that is absent where the clock was not compared.
func known(get func(*Clock) int64) func(*Clock) (int64, bool) {
	return func(c *Clock) (int64, bool) { return get(c), c.Method != Unknown }
}

// clockColumns are those of table clock: a row is the clock of a recording in a joined dataset.
var clockColumns = []derived.Column[Clock]{
	{Name: "session_id", Texts: texts(func(c *Clock) string { return c.Session })},
	{Name: "host", Texts: texts(func(c *Clock) string { return c.Host })},
	{Name: "reference", Texts: texts(func(c *Clock) string { return c.Reference })},
	{Name: "ahead_ns", Ints: known(func(c *Clock) int64 { return c.Ahead })},
	{Name: "at_ns", Ints: known(func(c *Clock) int64 { return c.At })},
	{Name: "drift", Floats: func(c *Clock) (float64, bool) { return c.Drift, c.Method != Unknown }},
	{Name: "error_ns", Ints: known(func(c *Clock) int64 { return c.Error })},
	{Name: "collectives", Ints: known(func(c *Clock) int64 { return int64(c.Collectives) })},
	{Name: "method", Texts: texts(func(c *Clock) string { return string(c.Method) })},
}
