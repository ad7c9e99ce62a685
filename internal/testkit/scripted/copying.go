package scripted

import "testing"

// Copying is a dataset of 40 steps of 11 ms, of which 2 ms are copies.
func Copying(t testing.TB) string {
	t.Helper()
	const ms = 1_000_000
	j := New()
	for range 40 {
		j.Load(ms / 10)
		j.Op("aten::mm", 4*ms)
		j.Sample("on_cpu", 2*ms, Python("forward", "/home/me/model.py", 17))
		j.Op("aten::contiguous", 2*ms)
		j.Backward(4 * ms)
		j.Optimize(ms - ms/10)
	}
	return Write(t, j)
}
