package flops

import (
	"math"
	"testing"
)

// The numbers are by hand, from the formulas of the package.
func TestOperatorsAreCountedByHand(t *testing.T) {
	bf16 := []string{"c10::BFloat16", "c10::BFloat16", "c10::BFloat16"}
	for name, c := range map[string]struct {
		operator string
		a        Arguments
		want     Work
	}{
		"mm": {"aten::mm", Arguments{Dims: [][]int64{{3, 4}, {4, 5}}, Types: []string{"float", "float"}},
			Work{2 * 3 * 4 * 5, 4 * (12 + 20 + 15), -1}},
		"addmm with a row bias": {"aten::addmm", Arguments{Dims: [][]int64{{5}, {3, 4}, {4, 5}, nil, nil}, Types: bf16},
			Work{2*60 + 15, 2 * (12 + 20 + 15 + 5), -1}},
		"bmm": {"aten::bmm", Arguments{Dims: [][]int64{{7, 3, 4}, {7, 4, 5}}, Types: bf16}, Work{2 * 7 * 60, 2 * 7 * (12 + 20 + 15), -1}},
		"attention": {"aten::_scaled_dot_product_flash_attention", Arguments{
			Dims: [][]int64{{2, 8, 10, 16}, {2, 8, 20, 16}, {2, 8, 20, 16}}, Types: bf16}, Work{4 * 2 * 8 * 10 * 20 * 16,
			2 * (2*8*10*16*2 + 2*8*20*16*2), -1}},
		"attention by length, fewer heads of keys": {"flash_attn::_flash_attn_forward", Arguments{
			Dims: [][]int64{{2, 10, 8, 16}, {2, 20, 4, 16}, {2, 20, 4, 16}}, Types: bf16}, Work{4 * 2 * 8 * 10 * 20 * 16,
			2 * (2*8*10*16*2 + 2*4*20*16*2), -1}},
		"a batched product that is added to": {"aten::baddbmm", Arguments{Dims: [][]int64{{7, 3, 5}, {7, 3, 4}, {7, 4, 5}, nil, nil},
			Types: bf16},
			Work{7 * (2*60 + 15), 2 * 7 * (15 + 12 + 20 + 15), -1}},
		"attention without its wrapper": {"aten::_efficient_attention_forward", Arguments{
			Dims: [][]int64{{2, 10, 8, 16}, {2, 20, 8, 16}, {2, 20, 8, 16}}, Types: bf16}, Work{4 * 2 * 8 * 10 * 20 * 16,
			2 * (2*8*10*16*2 + 2*8*20*16*2), -1}},
		"backward of a convolution, of both tensors": {"aten::convolution_backward", Arguments{
			Dims: [][]int64{{1, 6, 4, 4}, {1, 4, 8, 8}, {6, 2, 3, 3}, nil, nil, nil, nil, nil, nil, nil, nil}, Types: []string{"float"},
			Concrete: []string{"", "", "", "[6]", "[2, 2]", "[1, 1]", "[1, 1]", "False", "[0, 0]", "2", "[True, True, False]"}},
			Work{2 * 2 * 6 * 4 * 4 * 2 * 9, 4 * 2 * (96 + 256 + 108), -1}},
		"a product of eight bits": {"aten::_scaled_mm", Arguments{Dims: [][]int64{{3, 4}, {4, 5}}, Types: []string{"c10::Float8_e4m3fn"}},
			Work{120, 12 + 20 + 2*15, -1}},
		"a product of eight bits whose result has 32": {"aten::_scaled_mm", Arguments{Dims: [][]int64{{3, 4}, {4, 5}, nil, nil, nil, nil, nil,
			nil}, Types: []string{"c10::Float8_e4m3fn"},
			Concrete: []string{"", "", "", "", "", "", "6", "True"}}, Work{120, 12 + 20 + 4*15, -1}},
		"integers of eight bits": {"aten::_int_mm", Arguments{Dims: [][]int64{{3, 4}, {4, 5}}, Types: []string{"signed char"}},
			Work{120, 12 + 20 + 4*15, -1}},
		"a matrix by rows of the result's columns": {"bitsandbytes::int8_linear_matmul", Arguments{Dims: [][]int64{{3, 4}, {5, 4}},
			Types: []string{"signed char"}}, Work{120, -1, -1}},
		"groups of rows, an expert each": {"aten::_grouped_mm", Arguments{Dims: [][]int64{{30, 4}, {6, 4, 5}, {6}}, Types: bf16},
			Work{2 * 30 * 4 * 5, 2 * (120 + 120 + 150), -1}},
		"experts' gradients": {"aten::_grouped_mm", Arguments{Dims: [][]int64{{4, 30}, {30, 5}, {6}}, Types: bf16},
			Work{2 * 4 * 30 * 5, 2 * (120 + 150 + 6*20), -1}},
		"a stack of experts": {"aten::_scaled_grouped_mm", Arguments{Dims: [][]int64{{6, 3, 4}, {6, 4, 5}, {6, 3}, {6, 5}},
			Types: []string{"c10::Float8_e4m3fn"}},
			Work{2 * 6 * 3 * 4 * 5, 72 + 120 + 2*90, -1}},
		"backward of attention whose values are narrower, four heads to a key": {"flash_attn::_flash_attn_backward", Arguments{
			Dims: [][]int64{{2, 10, 8, 6}, {2, 10, 8, 16}, {2, 20, 2, 16}, {2, 20, 2, 6}}, Types: bf16},
			Work{2*2*8*10*20*(3*16+2*6) + 2*20*3*(16+6), 2 * (2*(2*10*8*16+2*20*2*(16+6)) + 2*10*8*6), -1}},
		"its arguments after the output": {"aiter::wrapper_fmha_v3_fwd", Arguments{
			Dims: [][]int64{{2, 10, 8, 16}, {2, 10, 8, 16}, {2, 20, 8, 16}, {2, 20, 8, 16}}, Types: bf16}, Work{4 * 2 * 8 * 10 * 20 * 16,
			2 * (2*8*10*16*2 + 2*8*20*16*2), -1}},
		"a transposed convolution whose products do not divide by what comes out": {"aten::convolution", Arguments{
			Dims: [][]int64{{1, 2, 3, 3}, {2, 3, 3, 3}, nil, nil, nil, nil, nil, nil, nil}, Types: []string{"float"},
			Concrete: []string{"", "", "", "[2, 2]", "[0, 0]", "[1, 1]", "True", "[1, 1]", "1"}},
			Work{2 * 18 * 27, 4 * (18 + 54 + 3*8*8), -1}},
		"convolution of two groups, padded, with a stride and a bias": {"aten::convolution", Arguments{
			Dims: [][]int64{{1, 4, 8, 8}, {6, 2, 3, 3}, {6}, nil, nil, nil, nil, nil, nil}, Types: []string{"float"},
			Concrete: []string{"", "", "", "[2, 2]", "[1, 1]", "[1, 1]", "False", "[0, 0]", "2"}},
			Work{2*6*4*4*2*9 + 6*4*4, 4 * (256 + 108 + 6 + 96), -1}},
		"a transposed convolution does what its mirror does": {"aten::convolution", Arguments{
			Dims: [][]int64{{1, 4, 4, 4}, {4, 3, 2, 2}, nil, nil, nil, nil, nil, nil, nil}, Types: []string{"float"},
			Concrete: []string{"", "", "", "[2, 2]", "[0, 0]", "[1, 1]", "True", "[0, 0]", "1"}},
			Work{2 * 64 * 3 * 4, 4 * (64 + 48 + 192), -1}},
		"a type that is not known has no bytes": {"aten::mm", Arguments{Dims: [][]int64{{1, 1}, {1, 1}}, Types: []string{"quint4x2"}},
			Work{2, -1, -1}},
	} {
		if got, ok := Of(c.operator, c.a); !ok || got != c.want {
			t.Errorf("%s: %+v, %t, want %+v", name, got, ok, c.want)
		}
	}
}

// What TraceLens publishes of traces of other models, on an H100 and an MI300X: GFLOPS and
// MB (2^20) by shape. It halves what a causal mask hides, and has no bias of convolutions.
func TestOperatorsOfOtherModelsAreCountedAsPublished(t *testing.T) {
	bf16 := []string{"c10::BFloat16", "c10::BFloat16", "c10::BFloat16"}
	settings := func(before int, more ...string) []string { return append(make([]string, before), more...) }
	for name, c := range map[string]struct {
		operator   string
		a          Arguments
		gflops, mb float64
		causal     bool
	}{
		"Qwen1.5-0.5B, attention": {"aten::_scaled_dot_product_flash_attention", Arguments{
			Dims: [][]int64{{16, 16, 559, 64}, {16, 16, 559, 64}, {16, 16, 559, 64}, nil, nil, nil, nil}, Types: bf16, Concrete: settings(3, "0.",
				"True", "False", "0.125")},
			10.239377408, 69.875, true},
		"Qwen1.5-0.5B, addmm": {"aten::addmm", Arguments{Dims: [][]int64{{1024}, {8944, 1024}, {1024, 1024}, nil, nil}, Types: bf16},
			18.766086144, 36.939453125, false},
		"Qwen1.5-0.5B, bmm": {"aten::bmm", Arguments{Dims: [][]int64{{1, 32, 1}, {1, 1, 559}}, Types: []string{"float", "float"}}, 3.5776e-05,
			0.07049179077148438, false},
		"TimeSformer, bmm": {"aten::bmm", Arguments{Dims: [][]int64{{96, 3137, 64}, {96, 64, 3137}}, Types: bf16}, 120.923369472,
			1875.4220581054688, false},
		"ResNet, forward": {"aten::convolution", Arguments{Dims: [][]int64{{10, 512, 7, 7}, {512, 512, 3, 3}, nil, nil, nil, nil, nil, nil},
			Types:    bf16,
			Concrete: settings(3, "[1, 1]", "[1, 1]", "[1, 1]", "False", "[0, 0]", "1")}, 2.31211008, 5.45703125, false},
		"ResNet, backward": {"aten::convolution_backward", Arguments{Dims: [][]int64{{10, 64, 56, 56}, {10, 64, 56, 56}, {64, 64, 3, 3}, nil, nil,
			nil, nil, nil, nil, nil, nil}, Types: bf16,
			Concrete: settings(3, "[0]", "[1, 1]", "[1, 1]", "[1, 1]", "False", "[0, 0]", "1", "[True, True, False]")}, 4.62422016, 15.453125,
			false},
		"Wan, in three dimensions": {"aten::convolution", Arguments{Dims: [][]int64{{1, 96, 6, 258, 258}, {96, 96, 3, 3, 3}, nil, nil, nil, nil,
			nil, nil, nil}, Types: bf16,
			Concrete: settings(3, "[1, 1, 1]", "[0, 0, 0]", "[1, 1, 1]", "False", "[0, 0, 0]", "1")}, 130.459631616, 121.60400390625, false},
	} {
		got, ok := Of(c.operator, c.a)
		n := got.FLOPs
		if c.causal {
			n = got.Causal
		}
		if !ok || float64(n) != math.Round(c.gflops*1e9) || float64(got.Bytes) != math.Round(c.mb*(1<<20)) || (got.Causal >= 0) != c.causal {
			t.Errorf("%s: %+v, %t, want %g GFLOPS, %g MB", name, got, ok, c.gflops, c.mb)
		}
	}
}

func TestCausalMasksAreFoundWhereTheOperatorHasThem(t *testing.T) {
	for operator, c := range attentions {
		a := Arguments{Dims: make([][]int64, c.causal+1), Concrete: make([]string, c.causal+1), Types: []string{"c10::Half"}}
		for i := range c.query + 3 {
			a.Dims[i] = []int64{2, 4, 4, 8}
		}
		for value, want := range map[string]bool{"True": true, "False": false, "": false, "None": false, "0": false, "1": true} {
			a.Concrete[c.causal] = value
			if w, ok := Of(operator, a); !ok || (w.Causal == w.FLOPs/2) != want {
				t.Errorf("%s with %q: %+v, %t", operator, value, w, ok)
			}
		}
		a.Concrete[c.causal], a.Dims[c.query] = "True", []int64{2, 3, 3, 8}
		if w, ok := Of(operator, a); ok && w.Causal >= 0 {
			t.Errorf("%s of other lengths: %+v", operator, w)
		}
	}
}

func TestShapesThatDoNotFitAreNotCounted(t *testing.T) {
	for name, a := range map[string]struct {
		operator string
		Arguments
	}{
		"no arguments":       {"aten::mm", Arguments{}},
		"inner sizes differ": {"aten::mm", Arguments{Dims: [][]int64{{3, 4}, {5, 6}}}},
		"a list of tensors":  {"aten::bmm", Arguments{Dims: [][]int64{nil, nil}}},
		"no settings":        {"aten::convolution", Arguments{Dims: [][]int64{{1, 4, 8, 8}, {6, 2, 3, 3}}}},
		"a stride of nothing": {"aten::convolution", Arguments{Dims: [][]int64{{1, 4, 8}, {6, 4, 3}}, Concrete: []string{"", "", "",
			"[0]", "[0]", "[1]", "False", "[0]", "1"}}},
		"sizes that no call has": {"aten::mm", Arguments{Dims: [][]int64{{1 << 40, 1 << 40}, {1 << 40, 1 << 40}}, Types: []string{"float",
			"float"}}},
		"sizes that overflow to a call": {"aten::bmm", Arguments{Dims: [][]int64{{1 << 32, 1 << 32, 3}, {1 << 32, 3, 1 << 32}}}},
		"a negative size":               {"aten::mm", Arguments{Dims: [][]int64{{-3, 4}, {4, -5}}}},
		"groups of other numbers":       {"aten::_grouped_mm", Arguments{Dims: [][]int64{{3, 3, 4}, {2, 4, 5}}}},
		"an operator without":           {"aten::relu", Arguments{Dims: [][]int64{{3, 4}}}},
		"attention of 3 sizes": {"aten::_scaled_dot_product_flash_attention", Arguments{Dims: [][]int64{{2, 8, 16}, {2, 8, 16},
			{2, 8, 16}}}},
	} {
		if got, ok := Of(a.operator, a.Arguments); ok {
			t.Errorf("%s: %+v", name, got)
		}
	}
}
