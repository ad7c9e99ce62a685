package importer

import "testing"

// Operators of other models than the given trace's, as torch.profiler writes them.
func TestOperatorsOfOtherModelsHaveTheirFLOPs(t *testing.T) {
	db, _ := importFiles(t, file(t, "t.json", trace(`
{"ph": "X", "cat": "cpu_op", "name": "aten::scaled_dot_product_attention", "pid": 7, "tid": 8, "ts": 100, "dur": 90, "args": {"Input Dims": [[16, 16, 559, 64], [16, 16, 559, 64], [16, 16, 559, 64], [], [], [], [], []], "Input type": ["c10::BFloat16", "c10::BFloat16", "c10::BFloat16", "", "Scalar", "Scalar", "", "Scalar"], "Concrete Inputs": ["", "", "", "", "0.", "True", "", "False"]}},
{"ph": "X", "cat": "cpu_op", "name": "aten::_scaled_dot_product_flash_attention", "pid": 7, "tid": 8, "ts": 110, "dur": 70, "args": {"Input Dims": [[16, 16, 559, 64], [16, 16, 559, 64], [16, 16, 559, 64], [], [], [], []], "Input type": ["c10::BFloat16", "c10::BFloat16", "c10::BFloat16", "Scalar", "Scalar", "Scalar", "Scalar"], "Concrete Inputs": ["", "", "", "0.", "True", "False", "0.125"]}},
{"ph": "X", "cat": "cpu_op", "name": "aten::_flash_attention_forward", "pid": 7, "tid": 8, "ts": 120, "dur": 50, "args": {"Input Dims": [[16, 559, 16, 64], [16, 559, 16, 64], [16, 559, 16, 64], [], [], [], [], [], [], [], [], [], [], [], []], "Input type": ["c10::BFloat16", "c10::BFloat16", "c10::BFloat16"], "Concrete Inputs": ["", "", "", "", "", "559", "559", "0.", "True", "False", "0.125", "", "", "", ""]}},
{"ph": "X", "cat": "cpu_op", "name": "aten::conv2d", "pid": 7, "tid": 8, "ts": 200, "dur": 90, "args": {"Input Dims": [[10, 512, 7, 7], [512, 512, 3, 3], [], [], [], [], []], "Input type": ["c10::BFloat16", "c10::BFloat16", "", "ScalarList", "ScalarList", "ScalarList", "Scalar"], "Concrete Inputs": ["", "", "", "[1, 1]", "[1, 1]", "[1, 1]", "1"]}},
{"ph": "X", "cat": "cpu_op", "name": "aten::convolution", "pid": 7, "tid": 8, "ts": 210, "dur": 70, "args": {"Input Dims": [[10, 512, 7, 7], [512, 512, 3, 3], [], [], [], [], [], [], []], "Input type": ["c10::BFloat16", "c10::BFloat16", "", "ScalarList", "ScalarList", "ScalarList", "Scalar", "ScalarList", "Scalar"], "Concrete Inputs": ["", "", "", "[1, 1]", "[1, 1]", "[1, 1]", "False", "[0, 0]", "1"]}},
{"ph": "X", "cat": "cpu_op", "name": "aten::miopen_convolution", "pid": 7, "tid": 8, "ts": 220, "dur": 50, "args": {"Input Dims": [[10, 512, 7, 7], [512, 512, 3, 3], [], [], [], [], [], [], []], "Input type": ["c10::BFloat16", "c10::BFloat16"]}},
{"ph": "X", "cat": "cpu_op", "name": "aten::_grouped_mm", "pid": 7, "tid": 8, "ts": 300, "dur": 50, "args": {"Input Dims": [[4096, 512], [8, 512, 1024], [8], [], []], "Input type": ["c10::BFloat16", "c10::BFloat16", "int", "", ""], "Concrete Inputs": ["", "", "", "", ""]}}`)))
	answers(t, db, map[string]string{
		"SELECT flops || ' ' || flops_causal || ' ' || bytes_moved FROM span WHERE name = " +
			"'aten::_scaled_dot_product_flash_attention'": "20478754816 10239377408 73269248",
		"SELECT flops || ' ' || bytes_moved FROM span WHERE name = 'aten::convolution' AND flops_causal IS NULL": "2312110080 5722112",
		"SELECT flops || ' ' || bytes_moved FROM span WHERE name = 'aten::_grouped_mm'":                          "4294967296 20971520",
		"SELECT count(*) FROM span WHERE flops IS NOT NULL":                                                      "3",
	})
}
