package rules

import (
	"regexp"
	"slices"

	"github.com/ebpfprof/ebpfprof/internal/answer/findings/evidence"
	"github.com/ebpfprof/ebpfprof/internal/answer/findings/thresholds"
	"github.com/ebpfprof/ebpfprof/internal/model/graph"
	"github.com/ebpfprof/ebpfprof/internal/model/timeline"
)

// pointwise are operators that work element by element: several in a row can be one.
var pointwise = []string{
	"aten::add", "aten::add_", "aten::sub", "aten::sub_", "aten::rsub", "aten::mul", "aten::mul_", "aten::div", "aten::div_",
	"aten::pow", "aten::exp", "aten::exp_", "aten::log", "aten::sqrt", "aten::rsqrt", "aten::neg", "aten::abs", "aten::sin",
	"aten::cos", "aten::tanh", "aten::sigmoid", "aten::relu", "aten::relu_", "aten::gelu", "aten::silu", "aten::clamp",
	"aten::clamp_min", "aten::clamp_max", "aten::where", "aten::maximum", "aten::minimum", "aten::reciprocal", "aten::square",
	"aten::erf", "aten::softplus", "aten::leaky_relu", "aten::lerp", "aten::addcmul", "aten::addcdiv",
	"aten::exp2", "aten::expm1", "aten::log1p", "aten::log2", "aten::log10", "aten::tan", "aten::atan", "aten::sinh", "aten::cosh",
	"aten::tanh_", "aten::sigmoid_", "aten::sqrt_", "aten::rsqrt_", "aten::neg_", "aten::pow_", "aten::clamp_", "aten::clamp_min_",
	"aten::clamp_max_", "aten::abs_", "aten::sign", "aten::floor", "aten::ceil", "aten::round", "aten::trunc", "aten::remainder",
	"aten::fmod", "aten::elu", "aten::hardtanh", "aten::hardtanh_", "aten::hardswish", "aten::hardsigmoid", "aten::mish",
	"aten::log_sigmoid", "aten::threshold", "aten::masked_fill", "aten::masked_fill_", "aten::eq", "aten::ne", "aten::gt", "aten::ge",
	"aten::lt", "aten::le", "aten::logical_and", "aten::logical_or", "aten::logical_not", "aten::addcmul_", "aten::addcdiv_",
	"aten::lerp_", "aten::silu_", "aten::gelu_", "aten::leaky_relu_", "aten::nan_to_num", "aten::atan2", "aten::logaddexp",
}

// pointwiseNodes are their nodes in the backward pass, which a fused operator fuses, too.
var pointwiseNodes = regexp.MustCompile(`^(Add|Sub|Rsub|Mul|Div|Pow|Exp|Log|Sqrt|Rsqrt|Neg|Abs|Sin|Cos|Tanh|Sigmoid|` +
	`Relu|Gelu|Silu|Clamp\w*|Where|Reciprocal|Square|Erf|Softplus|LeakyRelu|Lerp|Exp2|Expm1|Log1P|Log2|Log10|Tan|Atan2?|Sinh|Cosh|` +
	`Sign|Remainder|Fmod|Elu|Hardtanh|Hardswish|Hardsigmoid|Mish|LogSigmoid|Threshold|MaskedFill|Addcmul|Addcdiv|NanToNum|` +
	`Logaddexp)Backward\d+$`)

// Fusion: on a CPU elementwise operators in a row, on a device short kernels under
// one operator. Each group could take as long as its longest member.
var Fusion = evidence.Rule{
	Name: "fusion", Title: "small operations that could be one", Placed: true, Look: lookFusion,
	Thresholds: []thresholds.Threshold{fusionCalls, fusionRun, fusionKernelMicros},
}

var (
	fusionCalls = thresholds.Threshold{
		Name: "fusion_calls", Default: 8, Whole: true,
		Why: "Calls of a step that could be one: at least this many a step, this many in a row, each no longer than " +
			"this (on devices).",
	}
	fusionRun          = thresholds.Threshold{Name: "fusion_run", Default: 4, Whole: true}
	fusionKernelMicros = thresholds.Threshold{Name: "fusion_kernel_microseconds", Default: 10}
)

func lookFusion(r *evidence.Recording) ([]evidence.Candidate, error) {
	rows := map[*timeline.StepGraph][][]int{}
	all := evidence.Accused{}
	calls := 0
	for _, g := range r.Graphs {
		rows[g] = append(runsOf(r, g, r.Thresholds.Count(fusionRun)), kernelsOf(g, r.Thresholds)...)
		for _, row := range rows[g] {
			calls += len(row)
			all[g] = append(all[g], row...)
		}
	}
	if calls < r.Thresholds.Count(fusionCalls)*len(r.Graphs) {
		return nil, nil
	}
	return []evidence.Candidate{{
		Name: all.Longest(), Place: r.PlaceOf(all),
		Replace: func(g *timeline.StepGraph, t graph.Times) {
			for _, row := range rows[g] {
				longest := slices.MaxFunc(row, func(a, b int) int { return int(evidence.Duration(g, a) - evidence.Duration(g, b)) })
				for _, i := range row {
					if i == longest {
						continue
					}
					for _, n := range g.Under(i) {
						t.Own[n] = min(t.Own[n], 0)
					}
				}
			}
		},
		Evidence: r.SpansThat("name IN (" + evidence.Quoted(pointwise) + ")"),
		Advice: "Many small operations in a row read and write the same data. Fuse them: torch.compile, a fused operator " +
			"of the library, or a captured graph.",
	}}, nil
}

// runsOf are rows of elementwise operators, or of their backward nodes, that
// nothing but the interpreter or the engine lies between, in the loop's own code.
func runsOf(r *evidence.Recording, g *timeline.StepGraph, least int) (runs [][]int) {
	var run []int
	end := func() {
		if len(run) >= least {
			runs = append(runs, run)
		}
		run = nil
	}
	inNode := func(s timeline.Span) bool { return s.Layer == "autograd" && s.Category == "node" }
	for i, s := range g.Spans {
		// Spans of devices and of the runtime lie inside operators here.
		host := s.Layer == "op" || s.Layer == "autograd" || s.Layer == "scope"
		if s.TID != r.Thread.TID || !host || s.Layer == "op" && (!g.Outermost(i) || evidence.Within(g, i, inNode)) {
			continue
		}
		if len(run) > 0 && s.Layer == "op" && slices.Contains(viewNames, s.Name) {
			continue // only says which elements the next one takes
		}
		member := s.Layer == "op" && slices.Contains(pointwise, s.Name) || inNode(s) && pointwiseNodes.MatchString(s.Name)
		if member && (len(run) == 0 || g.Parent(i) == g.Parent(run[0])) && r.OfTheLoop(g, i) {
			run = append(run, i)
			continue
		}
		end()
	}
	end()
	return runs
}

// kernelsOf are the kernels under each outermost operator, where they are many
// and short.
func kernelsOf(g *timeline.StepGraph, t thresholds.Set) (groups [][]int) {
	byOperator := map[int][]int{}
	for i, s := range g.Spans {
		if !s.OnDevice() || s.Category != "kernel" {
			continue
		}
		operator := -1
		for p := g.Parent(i); p >= 0; p = g.Parent(p) {
			if g.Spans[p].Layer == "op" {
				operator = p
			}
		}
		if operator >= 0 {
			byOperator[operator] = append(byOperator[operator], i)
		}
	}
	for _, kernels := range byOperator {
		var sum int64
		for _, i := range kernels {
			sum += evidence.Duration(g, i)
		}
		if len(kernels) >= t.Count(fusionCalls) && float64(sum)/float64(len(kernels)) <= t.Of(fusionKernelMicros)*1e3 {
			groups = append(groups, kernels)
		}
	}
	return groups
}
