package report

// calledAgain are the operators that a checkpoint calls again in the backward pass, since it
// kept no activations: work that the device does and the model did not ask for.
//
// PyTorch's checkpoints (torch/utils/checkpoint.py) call the forward code from a backward node
// of their own, CheckpointFunctionBackward, which runs the backward pass of it as well, as a
// pass inside. Or, without that node, when a node asks for the tensors that were not saved: then
// that node of C++ (AddmmBackward0) calls operators that no derivative formula does
// (tools/autograd/derivatives.yaml has mm and bmm, and no linear), from hooks that Python's
// frames name where there are any. A backward pass that is differentiated itself calls
// convolutions from nodes that are called …BackwardBackward.
const calledAgain = `CREATE OR REPLACE TEMP TABLE called_again AS
	WITH RECURSIVE again AS (
		SELECT session_id, span_id FROM rows WHERE layer IN ('autograd', 'scope') AND contains(name, 'CheckpointFunctionBackward')
		UNION
		SELECT r.session_id, r.span_id FROM rows r JOIN rows p ON r.session_id = p.session_id AND r.parent_id = p.span_id
		WHERE r.layer = 'op' AND p.layer IN ('autograd', 'op') AND regexp_matches(p.name, 'Backward[0-9]+$')
		AND NOT contains(p.name, 'BackwardBackward')
		  AND regexp_matches(r.name, '^aten::(linear|matmul|addmm|baddbmm|addbmm|einsum|conv[123]d|_?convolution|_?scaled_dot_product\w*_attention)$|_forward$')
		UNION
		SELECT session_id, span_id FROM rows WHERE flops IS NOT NULL AND (session_id, coalesce(python_stack_id, stack_id)) IN (
			SELECT (session_id, stack_id) FROM stack WHERE list_bool_or(list_transform(frames, f -> f.kind = 'python'
				AND suffix(coalesce(f.file, ''), 'torch/utils/checkpoint.py')
				AND regexp_matches(coalesce(f."function", ''), '(^|[.])(recompute_fn|unpack_hook)$'))))
	), inside AS (
		SELECT * FROM again
		UNION
		SELECT r.session_id, r.span_id FROM rows r JOIN inside i ON r.session_id = i.session_id AND r.parent_id = i.span_id
		WHERE r.layer IN ('op', 'scope')
	) SELECT * FROM inside`

// recomputedFLOPs are the FLOPs of rows that were called again.
func (b *builder) recomputedFLOPs() (flops float64, err error) {
	if err := b.db.Exec(b.ctx, calledAgain); err != nil {
		return 0, err
	}
	err = b.db.Row(b.ctx, `SELECT coalesce(sum(flops * weight), 0)::DOUBLE FROM rows WHERE flops IS NOT NULL
		AND (session_id, span_id) IN (SELECT (session_id, span_id) FROM called_again)`, nil, &flops)
	return flops, err
}
