// Package flops counts the floating-point operations and the bytes of operators
// from the shapes of their arguments.
//
// The formulas are those that PyTorch's own counter and TraceLens use: a matrix
// product 2·M·N·K, with a bias M·N more; attention 4·B·H·Nq·Nkv·d, with no
// discount for a causal mask; a convolution 2·N·Cout·(output size)·(Cin/groups)·
// (kernel size), with a bias one more for each output element. Bytes are those of
// the inputs, weights, bias and output, each once.
package flops

import (
	"slices"
	"strconv"
	"strings"
)

// Arguments are what an operator was called with: one entry for each argument,
// nil dimensions where it is no tensor.
type Arguments struct {
	Dims     [][]int64
	Types    []string
	Concrete []string // values of what is no tensor, as torch.profiler writes them
}

// Work is what a call did.
type Work struct {
	FLOPs int64
	Bytes int64 // -1 where an element type is not known
}

type formula func(Arguments) (flops, elements int64, ok bool)

var formulas = map[string]formula{
	"aten::mm":                func(a Arguments) (int64, int64, bool) { return product(a, 0, 1, -1) },
	"aten::addmm":             func(a Arguments) (int64, int64, bool) { return product(a, 1, 2, 0) },
	"aten::addmm_":            func(a Arguments) (int64, int64, bool) { return product(a, 1, 2, 0) },
	"aten::_addmm_activation": func(a Arguments) (int64, int64, bool) { return product(a, 1, 2, 0) },
	"aten::bmm":               func(a Arguments) (int64, int64, bool) { return product(a, 0, 1, -1) },
	"aten::baddbmm":           func(a Arguments) (int64, int64, bool) { return product(a, 1, 2, 0) },
	"aten::baddbmm_":          func(a Arguments) (int64, int64, bool) { return product(a, 1, 2, 0) },
	"aten::_scaled_mm":        scaledProduct,
	"aten::_int_mm":           scaledProduct,

	"trtllm::cublas_scaled_mm":         scaledProduct,
	"bitsandbytes::int8_linear_matmul": scaledProduct,
	"aten::mv":                         func(a Arguments) (int64, int64, bool) { return vector(a, 0, 1) },
	"aten::addmv":                      func(a Arguments) (int64, int64, bool) { return vector(a, 1, 2) },

	"aten::_scaled_dot_product_flash_attention":              attention,
	"aten::_scaled_dot_product_flash_attention_for_cpu":      attention,
	"aten::_scaled_dot_product_efficient_attention":          attention,
	"aten::_scaled_dot_product_cudnn_attention":              attention,
	"aten::_scaled_dot_product_fused_attention_overrideable": attention,

	"aten::_scaled_dot_product_flash_attention_backward":         attentionBackward,
	"aten::_scaled_dot_product_flash_attention_for_cpu_backward": attentionBackward,
	"aten::_scaled_dot_product_efficient_attention_backward":     attentionBackward,
	"aten::_scaled_dot_product_cudnn_attention_backward":         attentionBackward,

	// Asked for directly, with batch, length, heads, width; so do packages of their own.
	"aten::_flash_attention_forward":     attentionByLength,
	"aten::_efficient_attention_forward": attentionByLength,
	"aten::_flash_attention_backward":    attentionBackwardByLength,

	"flash_attn::_flash_attn_forward": attentionByLength,
	"aiter::_flash_attn_forward":      attentionByLength,
	"aiter::mha_fwd":                  attentionByLength,
	"aiter::fmha_v3_fwd":              attentionByLength,
	"aiter::wrapper_fmha_v3_fwd":      attentionByLength,
	"flash_attn_3::fwd":               attentionByLength,

	"flash_attn::_flash_attn_backward": attentionBackwardByLength,
	"aiter::_flash_attn_backward":      attentionBackwardByLength,
	"aiter::mha_bwd":                   attentionBackwardByLength,
	"aiter::fmha_v3_bwd":               attentionBackwardByLength,
	"aiter::wrapper_fmha_v3_bwd":       attentionBackwardByLength,

	"aten::convolution":          convolution,
	"aten::convolution_backward": convolutionBackward,
}

// Counted says whether there is a formula for an operator.
func Counted(operator string) bool { return formulas[operator] != nil }

// Of counts a call; false where there is no formula for it, or its shapes are
// not those of such a call.
func Of(operator string, a Arguments) (Work, bool) {
	f := formulas[operator]
	if f == nil {
		return Work{}, false
	}
	n, elements, ok := f(a)
	if !ok || n < 0 {
		return Work{}, false
	}
	size := int64(-1)
	for i, dims := range a.Dims {
		if len(dims) > 0 && i < len(a.Types) {
			size = ElementSize(a.Types[i])
			break
		}
	}
	if size < 0 || elements < 0 {
		return Work{n, -1}, true
	}
	return Work{n, elements * size}, true
}

func (a Arguments) dims(i int) []int64 {
	if i < 0 || i >= len(a.Dims) {
		return nil
	}
	return a.Dims[i]
}

func volume(dims []int64) int64 {
	if len(dims) == 0 {
		return 0
	}
	n := int64(1)
	for _, d := range dims {
		n *= d
	}
	return n
}

// product is a matrix product, batched or not: arguments x and y, and the one
// that is added, if any.
func product(a Arguments, x, y, added int) (int64, int64, bool) {
	l, r := a.dims(x), a.dims(y)
	if len(l) < 2 || len(l) != len(r) || l[len(l)-1] != r[len(r)-2] {
		return 0, 0, false
	}
	batch := volume(l[:len(l)-2])
	if len(l) == 2 {
		batch = 1
	}
	m, k, n := l[len(l)-2], l[len(l)-1], r[len(r)-1]
	work, elements := 2*batch*m*n*k, volume(l)+volume(r)+batch*m*n
	if bias := a.dims(added); len(bias) > 0 {
		work += batch * m * n
		elements += volume(bias)
	}
	return work, elements, true
}

// scaledProduct has arguments of eight bits and a result of a type that only its
// value says: its bytes are not counted.
func scaledProduct(a Arguments) (int64, int64, bool) {
	n, _, ok := product(a, 0, 1, -1)
	return n, -1, ok
}

func vector(a Arguments, x, y int) (int64, int64, bool) {
	m, v := a.dims(x), a.dims(y)
	if len(m) != 2 || len(v) != 1 || m[1] != v[0] {
		return 0, 0, false
	}
	return 2 * m[0] * m[1], volume(m) + v[0] + m[0], true
}

// attention takes query, key and value as batch, heads, length, width.
func attention(a Arguments) (int64, int64, bool) { return attentionOf(a, 0) }

func attentionOf(a Arguments, from int) (int64, int64, bool) {
	q, k, v := a.dims(from), a.dims(from+1), a.dims(from+2)
	if len(q) != 4 || len(k) != 4 || len(v) != 4 || q[3] != k[3] || k[2] != v[2] {
		return 0, 0, false
	}
	scores := q[0] * q[1] * q[2] * k[2]
	out := q[0] * q[1] * q[2] * v[3]
	return 2*scores*q[3] + 2*scores*v[3], volume(q) + volume(k) + volume(v) + out, true
}

// attentionByLength takes them as batch, length, heads, width.
func attentionByLength(a Arguments) (int64, int64, bool) { return turnedAttention(a, 0) }

// attentionBackwardByLength has the gradient of the output before them.
func attentionBackwardByLength(a Arguments) (int64, int64, bool) {
	n, elements, ok := turnedAttention(a, 1)
	return n / 2 * 5, 2 * elements, ok
}

func turnedAttention(a Arguments, from int) (int64, int64, bool) {
	turned := Arguments{Dims: make([][]int64, 3)}
	for i := range turned.Dims {
		d := a.dims(from + i)
		if len(d) != 4 {
			return 0, 0, false
		}
		turned.Dims[i] = []int64{d[0], d[2], d[1], d[3]}
	}
	return attentionOf(turned, 0)
}

// attentionBackward has five products of the forward's two: the scores again,
// and the gradients of scores, query, key and value.
func attentionBackward(a Arguments) (int64, int64, bool) {
	n, elements, ok := attentionOf(a, 1)
	return n / 2 * 5, 2 * elements, ok
}

// Arguments of aten::convolution: input, weight, bias, stride, padding,
// dilation, transposed, output_padding, groups.
func convolution(a Arguments) (int64, int64, bool) {
	in, weight := a.dims(0), a.dims(1)
	if len(a.Concrete) < 9 {
		return 0, 0, false
	}
	out, perOutput, ok := convolved(in, weight, a.Concrete[3:9])
	if !ok {
		return 0, 0, false
	}
	n, elements := 2*out*perOutput, volume(in)+volume(weight)+out
	if bias := a.dims(2); len(bias) > 0 {
		n += out
		elements += volume(bias)
	}
	return n, elements, true
}

// convolved says how many elements come out and how many products each takes.
// The settings are those of a convolution from stride on.
func convolved(in, weight []int64, settings []string) (out, perOutput int64, ok bool) {
	if len(in) < 3 || len(in) != len(weight) {
		return 0, 0, false
	}
	n := len(in) - 2
	stride, padding, dilation := integers(settings[0], n), integers(settings[1], n), integers(settings[2], n)
	outputPadding := integers(settings[4], n)
	if stride == nil || padding == nil || dilation == nil {
		return 0, 0, false
	}
	transposed := strings.EqualFold(settings[3], "true")
	if transposed {
		// Each element of the input meets each weight of its group once.
		return transposedOutput(in, weight, stride, padding, dilation, outputPadding, settings[5])
	}
	out = in[0] * weight[0]
	for i := range n {
		if stride[i] <= 0 {
			return 0, 0, false
		}
		out *= (in[i+2]+2*padding[i]-dilation[i]*(weight[i+2]-1)-1)/stride[i] + 1
	}
	return out, volume(weight[1:]), true // weight[1] is Cin/groups
}

func transposedOutput(in, weight, stride, padding, dilation, extra []int64, groups string) (int64, int64, bool) {
	g, err := strconv.ParseInt(strings.TrimSpace(groups), 10, 64)
	if err != nil || extra == nil {
		return 0, 0, false
	}
	out := in[0] * weight[1] * g
	for i := range stride {
		out *= (in[i+2]-1)*stride[i] - 2*padding[i] + dilation[i]*(weight[i+2]-1) + extra[i] + 1
	}
	if out == 0 {
		return 0, 0, false
	}
	return out, volume(in) * volume(weight[1:]) / out, true
}

// convolutionBackward: grad_output, input, weight, bias sizes, stride, padding,
// dilation, transposed, output_padding, groups, output mask. Each gradient of a
// tensor costs what the forward did.
func convolutionBackward(a Arguments) (int64, int64, bool) {
	if len(a.Concrete) < 11 {
		return 0, 0, false
	}
	out, perOutput, ok := convolved(a.dims(1), a.dims(2), a.Concrete[4:10])
	if !ok {
		return 0, 0, false
	}
	mask := strings.Split(strings.Trim(a.Concrete[10], "[] "), ",")
	gradients := int64(0)
	for _, wanted := range mask[:min(2, len(mask))] {
		if strings.EqualFold(strings.TrimSpace(wanted), "true") {
			gradients++
		}
	}
	tensors := volume(a.dims(0)) + volume(a.dims(1)) + volume(a.dims(2))
	return 2 * out * perOutput * gradients, 2 * tensors, true
}

// integers reads [1, 2]; one number stands for all n.
func integers(text string, n int) []int64 {
	var all []int64
	for part := range strings.SplitSeq(strings.Trim(text, "[]() "), ",") {
		v, err := strconv.ParseInt(strings.TrimSpace(part), 10, 64)
		if err != nil {
			return nil
		}
		all = append(all, v)
	}
	if len(all) == 1 {
		return slices.Repeat(all, n)
	}
	if len(all) != n {
		return nil
	}
	return all
}

// ElementSize is that of a type as torch.profiler, C++ or Python spells it; -1
// where it is not known.
func ElementSize(name string) int64 {
	switch strings.TrimPrefix(strings.TrimPrefix(name, "c10::"), "torch.") {
	case "BFloat16", "Half", "bfloat16", "float16", "short", "short int", "int16", "unsigned short":
		return 2
	case "float", "float32", "int", "int32", "unsigned int":
		return 4
	case "double", "float64", "long", "long int", "int64", "c10::complex<float>", "complex<float>", "complex64":
		return 8
	case "complex<double>", "complex128":
		return 16
	case "signed char", "unsigned char", "char", "bool", "int8", "uint8",
		"Float8_e4m3fn", "Float8_e5m2", "Float8_e4m3fnuz", "Float8_e5m2fnuz":
		return 1
	}
	return -1
}
