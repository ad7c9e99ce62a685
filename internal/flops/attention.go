package flops

import "strings"

// attentionCall says where an operator has query, key and value among its arguments, and
// whether its mask is a causal one.
type attentionCall struct {
	query int
	// byLength: they are batch, length, heads, width, and not batch, heads, length, width.
	byLength bool
	backward bool
	// causal is the argument that is true of a causal mask, or 1 or 2 where kinds of masks
	// are numbered.
	causal int
}

var attentions = map[string]attentionCall{
	"aten::_scaled_dot_product_flash_attention":              {causal: 4},
	"aten::_scaled_dot_product_flash_attention_for_cpu":      {causal: 4},
	"aten::_scaled_dot_product_efficient_attention":          {causal: 6},
	"aten::_scaled_dot_product_cudnn_attention":              {causal: 6},
	"aten::_scaled_dot_product_fused_attention_overrideable": {causal: 5},

	"aten::_scaled_dot_product_flash_attention_backward":              {query: 1, backward: true, causal: 11},
	"aten::_scaled_dot_product_flash_attention_for_cpu_backward":      {query: 1, backward: true, causal: 7},
	"aten::_scaled_dot_product_efficient_attention_backward":          {query: 1, backward: true, causal: 11},
	"aten::_scaled_dot_product_cudnn_attention_backward":              {query: 1, backward: true, causal: 14},
	"aten::_scaled_dot_product_fused_attention_overrideable_backward": {query: 1, backward: true, causal: 13},

	// Asked for directly; so do packages of their own.
	"aten::_flash_attention_forward":      {byLength: true, causal: 8},
	"aten::_efficient_attention_forward":  {byLength: true, causal: 9},
	"aten::_flash_attention_backward":     {query: 1, byLength: true, backward: true, causal: 11},
	"aten::_efficient_attention_backward": {query: 1, byLength: true, backward: true, causal: 14},

	"flash_attn::_flash_attn_forward": {byLength: true, causal: 5},
	"flash_attn_3::fwd":               {byLength: true, causal: 24},
	"aiter::_flash_attn_forward":      {byLength: true, causal: 5},
	"aiter::mha_fwd":                  {byLength: true, causal: 5},
	"aiter::fmha_v3_fwd":              {byLength: true, causal: 5},
	"aiter::wrapper_fmha_v3_fwd":      {query: 1, byLength: true, causal: 6},

	"flash_attn::_flash_attn_backward": {query: 1, byLength: true, backward: true, causal: 11},
	"aiter::_flash_attn_backward":      {query: 1, byLength: true, backward: true, causal: 12},
	"aiter::mha_bwd":                   {query: 1, byLength: true, backward: true, causal: 8},
	"aiter::fmha_v3_bwd":               {query: 1, byLength: true, backward: true, causal: 8},
	"aiter::wrapper_fmha_v3_bwd":       {query: 1, byLength: true, backward: true, causal: 9},
}

// attended are the sizes of a call.
type attended struct{ batch, heads, keyHeads, queries, keys, width, valueWidth int64 }

func (c attentionCall) sizes(a Arguments) (attended, bool) {
	q, k, v := a.dims(c.query), a.dims(c.query+1), a.dims(c.query+2)
	if len(q) != 4 || len(k) != 4 || len(v) != 4 {
		return attended{}, false
	}
	heads, length := 1, 2
	if c.byLength {
		heads, length = 2, 1
	}
	if q[3] != k[3] || k[length] != v[length] || k[heads] <= 0 {
		return attended{}, false
	}
	return attended{q[0], q[heads], k[heads], q[length], k[length], q[3], v[3]}, true
}

// count has two products forward: of queries with keys, and of scores with values. The
// backward pass has five: the scores again, and the gradients of values, scores, queries
// and keys; where several heads of queries share one of keys, their gradients are summed.
// Its bytes are those of queries, keys and values, of their gradients, and of the
// output's gradient.
func (c attentionCall) count(a Arguments) (int64, int64, bool) {
	s, ok := c.sizes(a)
	if !ok {
		return 0, 0, false
	}
	scores := times(2, s.batch, s.heads, s.queries, s.keys)
	inputs := times(s.batch, s.heads, s.queries, s.width) + times(s.batch, s.keyHeads, s.keys, s.width+s.valueWidth)
	out := times(s.batch, s.heads, s.queries, s.valueWidth)
	if !c.backward {
		return times(scores, s.width+s.valueWidth), a.bytes(inputs + out), true
	}
	summed := times(s.batch, s.keys, s.width+s.valueWidth, max(s.heads/s.keyHeads-1, 0))
	return times(scores, 3*s.width+2*s.valueWidth) + summed, a.bytes(2*inputs + out), true
}

// isCausal says whether the mask leaves half of the scores.
func (c attentionCall) isCausal(a Arguments) bool {
	s, ok := c.sizes(a)
	if !ok || s.queries != s.keys || c.causal >= len(a.Concrete) {
		return false
	}
	switch strings.ToLower(strings.TrimSpace(a.Concrete[c.causal])) {
	case "true", "1", "2":
		return true
	}
	return false
}
