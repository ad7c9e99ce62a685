// Package flops counts the floating-point operations and the bytes of operators
// from the shapes of their arguments.
//
// The formulas are those that PyTorch's own counter and TraceLens use: a matrix
// product 2·M·N·K, with a bias M·N more; attention 4·B·H·Nq·Nkv·d, with no
// discount for a causal mask (what one leaves is given beside it); a convolution
// 2·N·Cout·(output size)·(Cin/groups)·(kernel size), with a bias one more for each
// output element. Bytes are those of the inputs, weights, bias and output, each once.
package flops

import (
	"math/bits"
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
	// Causal is the half of FLOPs that a causal mask leaves; -1 where there is none, or the
	// lengths of queries and keys differ.
	Causal int64
}

// A formula returns -1 for bytes that are not known.
type formula func(Arguments) (flops, bytes int64, ok bool)

var formulas = map[string]formula{
	"aten::mm":                func(a Arguments) (int64, int64, bool) { return product(a, 0, 1, -1) },
	"aten::addmm":             func(a Arguments) (int64, int64, bool) { return product(a, 1, 2, 0) },
	"aten::addmm_":            func(a Arguments) (int64, int64, bool) { return product(a, 1, 2, 0) },
	"aten::_addmm_activation": func(a Arguments) (int64, int64, bool) { return product(a, 1, 2, 0) },
	"aten::bmm":               func(a Arguments) (int64, int64, bool) { return product(a, 0, 1, -1) },
	"aten::baddbmm":           func(a Arguments) (int64, int64, bool) { return product(a, 1, 2, 0) },
	"aten::baddbmm_":          func(a Arguments) (int64, int64, bool) { return product(a, 1, 2, 0) },
	"aten::_scaled_mm":        scaledProduct,
	"aten::_int_mm":           func(a Arguments) (int64, int64, bool) { return wideProduct(a, 4) },
	"aten::_grouped_mm":       func(a Arguments) (int64, int64, bool) { return grouped(a, 2) },
	"aten::_scaled_grouped_mm": func(a Arguments) (int64, int64, bool) {
		return grouped(a, 4)
	},

	"trtllm::cublas_scaled_mm":         scaledProduct,
	"bitsandbytes::int8_linear_matmul": turnedProduct,
	"aten::mv":                         func(a Arguments) (int64, int64, bool) { return vector(a, 0, 1) },
	"aten::addmv":                      func(a Arguments) (int64, int64, bool) { return vector(a, 1, 2) },

	"aten::convolution":          convolution,
	"aten::convolution_backward": convolutionBackward,
}

// Counted says whether there is a formula for an operator.
func Counted(operator string) bool {
	_, attends := attentions[operator]
	return attends || formulas[operator] != nil
}

// Of counts a call; false where there is no formula for it, or its shapes are
// not those of such a call.
func Of(operator string, a Arguments) (Work, bool) {
	f, causal := formulas[operator], false
	if call, attends := attentions[operator]; attends {
		f, causal = call.count, call.isCausal(a)
	}
	if f == nil {
		return Work{}, false
	}
	n, bytes, ok := f(a)
	if !ok || n < 0 || n >= most || bytes >= most {
		return Work{}, false
	}
	w := Work{n, max(bytes, -1), -1}
	if causal {
		w.Causal = n / 2
	}
	return w, true
}

// most is what sizes are multiplied up to: no call does more, and sums of a few stay numbers.
const most = 1 << 58

// times multiplies, up to most; -1 where a size is negative.
func times(sizes ...int64) int64 {
	product := uint64(1)
	for _, n := range sizes {
		if n < 0 {
			return -1
		}
		high, low := bits.Mul64(product, uint64(n))
		if high > 0 || low > most {
			low = most
		}
		product = low
	}
	return int64(product)
}

func (a Arguments) dims(i int) []int64 {
	if i < 0 || i >= len(a.Dims) {
		return nil
	}
	return a.Dims[i]
}

// bytes of elements of the type of the first tensor; -1 where that is not known.
func (a Arguments) bytes(elements int64) int64 {
	size := a.elementSize()
	if size < 0 || elements < 0 {
		return -1
	}
	return times(elements, size)
}

func (a Arguments) elementSize() int64 {
	for i, dims := range a.Dims {
		if len(dims) > 0 && i < len(a.Types) {
			return ElementSize(a.Types[i])
		}
	}
	return -1
}

func volume(dims []int64) int64 {
	if len(dims) == 0 {
		return 0
	}
	return times(dims...)
}

// shapes of a matrix product, batched or not.
func shapes(l, r []int64) (batch, m, k, n int64, ok bool) {
	if len(l) < 2 || len(l) != len(r) || l[len(l)-1] != r[len(r)-2] {
		return 0, 0, 0, 0, false
	}
	return times(l[:len(l)-2]...), l[len(l)-2], l[len(l)-1], r[len(r)-1], true
}

// product is a matrix product, batched or not: arguments x and y, and the one
// that is added, if any.
func product(a Arguments, x, y, added int) (int64, int64, bool) {
	l, r := a.dims(x), a.dims(y)
	batch, m, k, n, ok := shapes(l, r)
	if !ok {
		return 0, 0, false
	}
	work, elements := times(2, batch, m, n, k), volume(l)+volume(r)+times(batch, m, n)
	if bias := a.dims(added); len(bias) > 0 {
		work += times(batch, m, n)
		elements += volume(bias)
	}
	return work, a.bytes(elements), true
}

// scaledProduct has, of arguments of eight bits, a result of a type that its seventh
// argument names: a number of c10::ScalarType. Without it that has two bytes; of wider
// arguments it has theirs.
func scaledProduct(a Arguments) (int64, int64, bool) {
	out := a.elementSize()
	if out == 1 {
		out = 2
	}
	if len(a.Concrete) > 6 {
		switch strings.TrimSpace(a.Concrete[6]) {
		case "5", "15":
			out = 2
		case "6":
			out = 4
		case "23", "24", "25", "26":
			out = 1
		}
	}
	return wideProduct(a, out)
}

// wideProduct has a result of elements of that size.
func wideProduct(a Arguments, out int64) (int64, int64, bool) {
	l, r := a.dims(0), a.dims(1)
	batch, m, k, n, ok := shapes(l, r)
	if !ok {
		return 0, 0, false
	}
	bytes := a.bytes(volume(l) + volume(r))
	if bytes >= 0 && out > 0 {
		bytes += times(batch, m, n, out)
	} else {
		bytes = -1
	}
	return times(2, batch, m, n, k), bytes, true
}

// turnedProduct has the second matrix by rows of the result's columns.
func turnedProduct(a Arguments) (int64, int64, bool) {
	l, r := a.dims(0), a.dims(1)
	if len(l) < 2 || len(r) != 2 || l[len(l)-1] != r[1] {
		return 0, 0, false
	}
	return times(2, volume(l), r[0]), -1, true
}

// grouped is a product of groups of rows with a matrix each, as mixtures of experts have
// it: where both arguments are stacks, each with its own; where one is, the other's rows
// or columns are divided among them; where none is, what is summed over is, and the
// result is a stack of as many as there are offsets.
func grouped(a Arguments, offsets int) (int64, int64, bool) {
	l, r := a.dims(0), a.dims(1)
	if len(l) < 2 || len(r) < 2 || len(l) > 3 || len(r) > 3 || l[len(l)-1] != r[len(r)-2] {
		return 0, 0, false
	}
	m, k, n := l[len(l)-2], l[len(l)-1], r[len(r)-1]
	groups, out := int64(1), times(m, n)
	switch {
	case len(l) == 3 && len(r) == 3:
		if l[0] != r[0] {
			return 0, 0, false
		}
		groups, out = l[0], times(l[0], m, n)
	case len(l) == 2 && len(r) == 2:
		if o := a.dims(offsets); len(o) == 1 {
			out = times(o[0], m, n)
		}
	}
	size := a.elementSize()
	if size == 1 { // of eight bits, with scales: the result has sixteen
		if bytes := a.bytes(volume(l) + volume(r)); bytes >= 0 {
			return times(2, groups, m, n, k), bytes + times(out, 2), true
		}
	}
	return times(2, groups, m, n, k), a.bytes(volume(l) + volume(r) + out), true
}

func vector(a Arguments, x, y int) (int64, int64, bool) {
	m, v := a.dims(x), a.dims(y)
	if len(m) != 2 || len(v) != 1 || m[1] != v[0] {
		return 0, 0, false
	}
	return times(2, m[0], m[1]), a.bytes(volume(m) + v[0] + m[0]), true
}

// Arguments of aten::convolution: input, weight, bias, stride, padding,
// dilation, transposed, output_padding, groups.
func convolution(a Arguments) (int64, int64, bool) {
	in, weight := a.dims(0), a.dims(1)
	if len(a.Concrete) < 9 {
		return 0, 0, false
	}
	out, products, ok := convolved(in, weight, a.Concrete[3:9])
	if !ok {
		return 0, 0, false
	}
	n, elements := times(2, products), volume(in)+volume(weight)+out
	if bias := a.dims(2); len(bias) > 0 {
		n += out
		elements += volume(bias)
	}
	return n, a.bytes(elements), true
}

// convolved says how many elements come out and how many products that takes.
// The settings are those of a convolution from stride on.
func convolved(in, weight []int64, settings []string) (out, products int64, ok bool) {
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
	out = times(in[0], weight[0])
	for i := range n {
		if stride[i] <= 0 {
			return 0, 0, false
		}
		out = times(out, (in[i+2]+2*padding[i]-dilation[i]*(weight[i+2]-1)-1)/stride[i]+1)
	}
	return out, times(out, volume(weight[1:])), true // weight[1] is Cin/groups
}

func transposedOutput(in, weight, stride, padding, dilation, extra []int64, groups string) (int64, int64, bool) {
	g, err := strconv.ParseInt(strings.TrimSpace(groups), 10, 64)
	if err != nil || extra == nil {
		return 0, 0, false
	}
	out := times(in[0], weight[1], g)
	for i := range stride {
		out = times(out, (in[i+2]-1)*stride[i]-2*padding[i]+dilation[i]*(weight[i+2]-1)+extra[i]+1)
	}
	if out <= 0 {
		return 0, 0, false
	}
	return out, times(volume(in), volume(weight[1:])), true
}

// convolutionBackward: grad_output, input, weight, bias sizes, stride, padding,
// dilation, transposed, output_padding, groups, output mask. Each gradient of a
// tensor costs what the forward did.
func convolutionBackward(a Arguments) (int64, int64, bool) {
	if len(a.Concrete) < 11 {
		return 0, 0, false
	}
	_, products, ok := convolved(a.dims(1), a.dims(2), a.Concrete[4:10])
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
	return times(2, products, gradients), a.bytes(2 * tensors), true
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
		"Float8_e4m3fn", "Float8_e5m2", "Float8_e4m3fnuz", "Float8_e5m2fnuz", "Float8_e8m0fnu":
		return 1
	}
	return -1
}
