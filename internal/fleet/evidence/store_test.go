package evidence

import "testing"

// TestAHostThatSaysItTwiceHasOneHang: its later word counts, beside what the others said before
// and after its first.
func TestAHostThatSaysItTwiceHasOneHang(t *testing.T) {
	const second = int64(1_000_000_000)
	part := func(host string, at, since int64) *stored {
		return &stored{host: host, at: at * second, since: since * second}
	}
	for name, c := range map[string]struct {
		parts []*stored // the latest first
		want  []int     // hosts of each hang
	}{
		"twice, the other between":       {[]*stored{part("a", 23, 10), part("b", 22, 11), part("a", 21, 10)}, []int{2}},
		"twice, the other before":        {[]*stored{part("a", 23, 10), part("a", 22, 10), part("b", 21, 11)}, []int{2}},
		"the job went on between":        {[]*stored{part("a", 53, 40), part("b", 52, 41), part("a", 22, 10), part("b", 21, 11)}, []int{2, 2}},
		"long before":                    {[]*stored{part("a", 100, 90), part("b", 30, 20)}, []int{1, 1}},
		"three hosts, one says it again": {[]*stored{part("c", 24, 9), part("a", 23, 10), part("b", 22, 10), part("a", 20, 10)}, []int{3}},
	} {
		var got []int
		for rest := c.parts; len(rest) > 0; {
			var together []*stored
			together, rest = oneHang(rest)
			got = append(got, len(together))
			if together[0] != c.parts[0] && len(got) == 1 {
				t.Errorf("%s: the latest word is not the first", name)
			}
		}
		if len(got) != len(c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
			continue
		}
		for i := range got {
			if got[i] != c.want[i] {
				t.Errorf("%s: %v, want %v", name, got, c.want)
			}
		}
	}
}
