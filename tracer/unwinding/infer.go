package unwinding

import (
	"github.com/ebpfprof/ebpfprof/symbolize/unwind"
	"github.com/ebpfprof/ebpfprof/tracer/site"
)

// Infer makes rules of what the planner of probe sites understands of code that
// its file does not describe.
func Infer(code []byte, address uint64) []unwind.InferredRule {
	heights := site.Heights(code, address)
	rules := make([]unwind.InferredRule, 0, len(heights))
	for _, h := range heights {
		i := unwind.InferredRule{Address: h.Address}
		if h.Known {
			i.Rule = unwind.Rule{Kind: unwind.Inferred, CFA: h.Offset, Aux: h.Slot}
			if h.ByFP {
				i.Rule.Register = unwind.FP
			}
			switch h.FP {
			case site.FPSaved:
				i.Rule.FramePointer, i.Rule.FPOffset = unwind.AtCFA, h.SavedFP
			case site.FPLost:
				i.Rule.FramePointer = unwind.Lost
			}
		}
		rules = append(rules, i)
	}
	return rules
}
