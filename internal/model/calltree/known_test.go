package calltree

import (
	"math"
	"testing"
)

// TestTimesOfATreeSumToWhatIsKnown: of an operator below two lines, of a backward node of the same name, and of a call of
// which nothing is known.
func TestTimesOfATreeSumToWhatIsKnown(t *testing.T) {
	root := New()
	mm := Identity{Kind: Operator, Name: "aten::mm"}
	for _, line := range []int32{3, 7} {
		linear := root.Child(Identity{Python, "main", "train.py", line}).Child(Identity{Kind: Operator, Name: "aten::linear"})
		linear.Add("host_ns", 100, 1)
		linear.Child(mm).Add("host_ns", 600*float64(line), 2)
		linear.Child(mm).Child(Identity{Kind: Call, Name: "cudaLaunchKernel"}).Add("host_ns", 50, 1)
	}
	root.Known("host_ns", map[string]float64{"aten::mm": 1000, "cudaLaunchKernel": 1})
	total := root.Inclusive("host_ns")
	if want := 1000.0 + 200 + 100; math.Abs(total[root]-want) > 1e-9 {
		t.Errorf("%g ns in all, want %g", total[root], want)
	}
	below := 0.0
	root.each(func(n *Node) {
		for _, c := range n.children {
			if total[c] > total[n] {
				t.Errorf("%s has %g ns, its parent %g", c.Name, total[c], total[n])
			}
		}
		if n.Name == "aten::mm" {
			below += n.Own["host_ns"].Sum
			if n.Own["host_ns"].Count != 2 {
				t.Errorf("%g calls, want 2", n.Own["host_ns"].Count)
			}
		}
	})
	if math.Abs(below-1000) > 1e-9 {
		t.Errorf("aten::mm has %g ns, want 1000", below)
	}
}
