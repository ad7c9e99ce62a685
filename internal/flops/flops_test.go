package flops

import "testing"

// The numbers are by hand, from the formulas of the package.
func TestOperatorsAreCountedByHand(t *testing.T) {
	bf16 := []string{"c10::BFloat16", "c10::BFloat16", "c10::BFloat16"}
	for name, c := range map[string]struct {
		operator string
		a        Arguments
		want     Work
	}{
		"mm":                    {"aten::mm", Arguments{Dims: [][]int64{{3, 4}, {4, 5}}, Types: []string{"float", "float"}}, Work{2 * 3 * 4 * 5, 4 * (12 + 20 + 15)}},
		"addmm with a row bias": {"aten::addmm", Arguments{Dims: [][]int64{{5}, {3, 4}, {4, 5}, nil, nil}, Types: bf16}, Work{2*60 + 15, 2 * (12 + 20 + 15 + 5)}},
		"bmm":                   {"aten::bmm", Arguments{Dims: [][]int64{{7, 3, 4}, {7, 4, 5}}, Types: bf16}, Work{2 * 7 * 60, 2 * 7 * (12 + 20 + 15)}},
		"attention": {"aten::_scaled_dot_product_flash_attention", Arguments{
			Dims: [][]int64{{2, 8, 10, 16}, {2, 8, 20, 16}, {2, 8, 20, 16}}, Types: bf16}, Work{4 * 2 * 8 * 10 * 20 * 16, 2 * (2*8*10*16*2 + 2*8*20*16*2)}},
		"attention by length, fewer heads of keys": {"flash_attn::_flash_attn_forward", Arguments{
			Dims: [][]int64{{2, 10, 8, 16}, {2, 20, 4, 16}, {2, 20, 4, 16}}, Types: bf16}, Work{4 * 2 * 8 * 10 * 20 * 16, 2 * (2*8*10*16*2 + 2*4*20*16*2)}},
		"a batched product that is added to": {"aten::baddbmm", Arguments{Dims: [][]int64{{7, 3, 5}, {7, 3, 4}, {7, 4, 5}, nil, nil}, Types: bf16},
			Work{7 * (2*60 + 15), 2 * 7 * (15 + 12 + 20 + 15)}},
		"attention without its wrapper": {"aten::_efficient_attention_forward", Arguments{
			Dims: [][]int64{{2, 10, 8, 16}, {2, 20, 8, 16}, {2, 20, 8, 16}}, Types: bf16}, Work{4 * 2 * 8 * 10 * 20 * 16, 2 * (2*8*10*16*2 + 2*8*20*16*2)}},
		"backward of a convolution, of both tensors": {"aten::convolution_backward", Arguments{
			Dims: [][]int64{{1, 6, 4, 4}, {1, 4, 8, 8}, {6, 2, 3, 3}, nil, nil, nil, nil, nil, nil, nil, nil}, Types: []string{"float"},
			Concrete: []string{"", "", "", "[6]", "[2, 2]", "[1, 1]", "[1, 1]", "False", "[0, 0]", "2", "[True, True, False]"}},
			Work{2 * 2 * 6 * 4 * 4 * 2 * 9, 4 * 2 * (96 + 256 + 108)}},
		"a product of eight bits": {"aten::_scaled_mm", Arguments{Dims: [][]int64{{3, 4}, {4, 5}}, Types: []string{"Float8_e4m3fn"}}, Work{120, -1}},
		"convolution of two groups, padded, with a stride and a bias": {"aten::convolution", Arguments{
			Dims: [][]int64{{1, 4, 8, 8}, {6, 2, 3, 3}, {6}, nil, nil, nil, nil, nil, nil}, Types: []string{"float"},
			Concrete: []string{"", "", "", "[2, 2]", "[1, 1]", "[1, 1]", "False", "[0, 0]", "2"}},
			Work{2*6*4*4*2*9 + 6*4*4, 4 * (256 + 108 + 6 + 96)}},
		"a transposed convolution does what its mirror does": {"aten::convolution", Arguments{
			Dims: [][]int64{{1, 4, 4, 4}, {4, 3, 2, 2}, nil, nil, nil, nil, nil, nil, nil}, Types: []string{"float"},
			Concrete: []string{"", "", "", "[2, 2]", "[0, 0]", "[1, 1]", "True", "[0, 0]", "1"}},
			Work{2 * 64 * 3 * 4, 4 * (64 + 48 + 192)}},
		"a type that is not known has no bytes": {"aten::mm", Arguments{Dims: [][]int64{{1, 1}, {1, 1}}, Types: []string{"quint4x2"}}, Work{2, -1}},
	} {
		if got, ok := Of(c.operator, c.a); !ok || got != c.want {
			t.Errorf("%s: %+v, %t, want %+v", name, got, ok, c.want)
		}
	}
}

func TestShapesThatDoNotFitAreNotCounted(t *testing.T) {
	for name, a := range map[string]struct {
		operator string
		Arguments
	}{
		"no arguments":         {"aten::mm", Arguments{}},
		"inner sizes differ":   {"aten::mm", Arguments{Dims: [][]int64{{3, 4}, {5, 6}}}},
		"a list of tensors":    {"aten::bmm", Arguments{Dims: [][]int64{nil, nil}}},
		"no settings":          {"aten::convolution", Arguments{Dims: [][]int64{{1, 4, 8, 8}, {6, 2, 3, 3}}}},
		"a stride of nothing":  {"aten::convolution", Arguments{Dims: [][]int64{{1, 4, 8}, {6, 4, 3}}, Concrete: []string{"", "", "", "[0]", "[0]", "[1]", "False", "[0]", "1"}}},
		"an operator without":  {"aten::relu", Arguments{Dims: [][]int64{{3, 4}}}},
		"attention of 3 sizes": {"aten::_scaled_dot_product_flash_attention", Arguments{Dims: [][]int64{{2, 8, 16}, {2, 8, 16}, {2, 8, 16}}}},
	} {
		if got, ok := Of(a.operator, a.Arguments); ok {
			t.Errorf("%s: %+v", name, got)
		}
	}
}
