package e2e

import (
	"fmt"
	"testing"

	"github.com/ebpfprof/ebpfprof/internal/testkit/e2e/harness"
)

func TestScopesOfPyTorch2AreCounted(t *testing.T) {
	harness.PyPI.Beside(t)
	for name := range trainingJobs {
		r := harness.Shared(t, harness.Unbudgeted, training(harness.PyPI, name)...)
		scopes := r.Counts(t, "SELECT name, count(*) FROM span WHERE layer = 'scope' AND end_method = 'scope_end' AND %s GROUP BY ALL",
			r.Region(t))
		harness.SameCounts(t, name, scopes, r.Truth.Scopes)
	}
}

// The enclosing scope of an operator, through the operators that call it.
const outermost = `
	WITH RECURSIVE up AS (
		SELECT span_id, parent_id, name, name AS ancestor, layer FROM span WHERE %[1]s
		UNION ALL
		SELECT u.span_id, p.parent_id, u.name, p.name, p.layer FROM up u JOIN span p ON u.parent_id = p.span_id)
	SELECT name, count(DISTINCT span_id) FROM up WHERE %[2]s GROUP BY ALL`

func TestOperatorsOfAScopeAreInside(t *testing.T) {
	harness.PyPI.Beside(t)
	r := harness.Shared(t, harness.Unbudgeted, training(harness.PyPI, "mlp")...)
	steps := r.Truth.Steps
	forward := r.Counts(t, outermost, r.Region(t), "layer = 'scope' AND ancestor = 'forward'")
	optimizer := r.Counts(t, outermost, r.Region(t), "layer = 'scope' AND ancestor LIKE 'Optimizer.step#%'")
	backward := r.Counts(t, outermost, r.Region(t), "ancestor LIKE 'Engine::execute%'")
	// Three linear layers with two activations, a loss; Adam over six
	// parameters; and what the backward pass does.
	for what, c := range map[string]struct{ got, want int64 }{
		"aten::linear in forward":        {forward["aten::linear"], 3 * steps},
		"aten::addmm in forward":         {forward["aten::addmm"], 3 * steps},
		"aten::relu in forward":          {forward["aten::relu"], 2 * steps},
		"aten::nll_loss in forward":      {forward["aten::nll_loss"], steps},
		"aten::addcdiv_ in forward":      {forward["aten::addcdiv_"], 0},
		"aten::mm in forward":            {forward["aten::mm"], 0},
		"aten::addcdiv_ in the step":     {optimizer["aten::addcdiv_"], 6 * steps},
		"aten::sqrt in the step":         {optimizer["aten::sqrt"], 6 * steps},
		"aten::linear in the step":       {optimizer["aten::linear"], 0},
		"aten::mm in the backward pass":  {backward["aten::mm"], 5 * steps},
		"threshold_backward in it":       {backward["aten::threshold_backward"], 2 * steps},
		"AddmmBackward0 in it":           {backward["AddmmBackward0"], 3 * steps},
		"aten::addmm in the backward":    {backward["aten::addmm"], 0},
		"aten::addcdiv_ in the backward": {backward["aten::addcdiv_"], 0},
	} {
		if c.got != c.want {
			t.Errorf("%s: %d, want %d", what, c.got, c.want)
		}
	}
}

func TestBackwardPassesAndNodesAreCounted(t *testing.T) {
	harness.BesideEachTorch(t, func(t *testing.T, v harness.Torch) {
		r := harness.Shared(t, harness.Unbudgeted, training(v, "mlp")...)
		passes := r.Counts(t, "SELECT category, count(*) FROM span WHERE category = 'backward' AND status = 'ok' AND %s GROUP BY ALL",
			r.Region(t))
		harness.SameCounts(t, "passes", passes, map[string]int64{"backward": r.Truth.BackwardPasses})
		nodes := r.Counts(t, "SELECT name, count(*) FROM span WHERE category = 'node' AND status = 'ok' AND %s GROUP BY ALL", r.Region(t))
		harness.SameCounts(t, "nodes", nodes, r.Truth.Nodes)
	})
}

// forwardOf is which operator made a node, by the node's class.
var forwardOf = map[string]string{
	"AddmmBackward0": "aten::addmm", "MmBackward0": "aten::mm", "MulBackward0": "aten::mul", "AddBackward0": "aten::add",
	"TBackward0": "aten::t", "ReluBackward0": "aten::relu", "LogSoftmaxBackward0": "aten::_log_softmax",
	"NllLossBackward0": "aten::nll_loss_forward",
	"BmmBackward0":     "aten::bmm", "GeluBackward0": "aten::gelu", "SoftmaxBackward0": "aten::_softmax",
	"MaskedFillBackward0": "aten::masked_fill",
	"EmbeddingBackward0":  "aten::embedding", "NativeLayerNormBackward0": "aten::native_layer_norm", "TransposeBackward0": "aten::transpose",
	"ViewBackward0": "aten::view", "ExpandBackward0": "aten::expand",
}

func TestBackwardNodesFlowFromTheirOperators(t *testing.T) {
	harness.BesideEachTorch(t, func(t *testing.T, v harness.Torch) {
		checked := map[string]bool{}
		for name := range trainingJobs {
			r := harness.Shared(t, harness.Unbudgeted, training(v, name)...)
			// Every node that has a sequence number comes from one operator, with
			// the same number; AccumulateGrad has none.
			nodes := r.Number(t, "SELECT count(*) FROM span WHERE category = 'node' AND sequence_number IS NOT NULL AND %s", r.Region(t))
			flows := r.Number(t, `SELECT count(*) FROM flow f JOIN span a ON f.from_span_id = a.span_id JOIN span b ON f.to_span_id = b.span_id
				WHERE f.kind = 'forward_backward' AND b.category = 'node' AND a.layer = 'op' AND a.sequence_number = b.sequence_number
				AND a.pid = b.pid AND a.ts_ns < b.ts_ns AND f.ts_ns BETWEEN (SELECT min(ts_ns) FROM span WHERE %[1]s)
				AND (SELECT max(ts_ns) FROM span WHERE %[1]s)`, r.Region(t))
			if nodes == 0 || nodes != flows {
				t.Errorf("%s: %d nodes with a sequence number, %d edges to operators with the same", name, nodes, flows)
			}
			for _, row := range r.Rows(t, `SELECT b.name, a.name, count(*) FROM flow f JOIN span a ON f.from_span_id = a.span_id
				JOIN span b ON f.to_span_id = b.span_id GROUP BY ALL`) {
				node, operator := fmt.Sprint(row[0]), fmt.Sprint(row[1])
				want, ok := forwardOf[node]
				if !ok {
					continue
				}
				checked[node] = true
				if operator != want {
					t.Errorf("%s: %d of %s come from %s, want %s", name, row[2], node, operator, want)
				}
			}
		}
		if len(checked) < 10 {
			t.Errorf("only %d classes of nodes were checked", len(checked))
		}
	})
}
