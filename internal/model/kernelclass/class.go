// Package kernelclass says what a kernel computes by its name, so that recordings
// from devices of different makers, whose kernels are called otherwise, have
// something in common.
package kernelclass

import "regexp"

// Classes of kernels.
const (
	GEMM          = "matrix product"
	Attention     = "attention"
	Convolution   = "convolution"
	Normalization = "normalization"
	Softmax       = "softmax"
	Reduction     = "reduction"
	Optimizer     = "optimizer"
	Embedding     = "embedding and indexing"
	Layout        = "copy and layout"
	Elementwise   = "elementwise"
	Collective    = "collective"
	Other         = "other"
)

// rules: the first that fits. The names are those of cuBLAS, CUTLASS and cuDNN
// (nvjet, xmma, implicit_gemm), of rocBLAS and Tensile (Cijk), hipBLASLt, MIOpen,
// Composable Kernel and AITER, of flash-attention on both, of PyTorch's own kernels,
// and of what Triton makes (triton_poi, _red, _per). A lambda is no LAMB optimizer.
var rules = []struct {
	names *regexp.Regexp
	class string
}{
	{regexp.MustCompile(`(?i)nccl|rccl|cross_device_reduce|^hccl|mscclKernel|^oneccl`), Collective},
	{regexp.MustCompile(`(?i)flash|fmha|attn|attention|sdpa`), Attention},
	{regexp.MustCompile(`(?i)nchwToNhwc|nhwcToNchw|SubTensorOpWith`), Layout}, // what cuDNN and MIOpen do around a convolution
	{regexp.MustCompile(
		`(?i)conv(?:olution|_|[0-9]|Fwd|Bwd|Wrw)|implicit_?gemm|winograd|miopen.*conv|igemm_(?:fwd|bwd|wrw)|dgrad|wgrad|xdlops?_bwd_weight|cudnn.*(?:fprop|nchw)`), Convolution},
	{regexp.MustCompile(`(?i)gemm|Cijk_|cutlass.*Kernel|cublas|nvjet|xmma|matmul|gemv|splitK|wmma|hipblaslt|dot_kernel`), GEMM},
	{regexp.MustCompile(`(?i)(?:layer|batch|group|rms|instance)_?norm|LayerNorm|RMSNorm|batchnorm|GammaBeta|RowwiseMoments`), Normalization},
	{regexp.MustCompile(`(?i)softmax|cross_?entropy|nll_loss`), Softmax},
	{regexp.MustCompile(`(?i)adam|sgd|lamb(?:[^d]|$)|multi_tensor_apply|fused_?optimizer|foreach`), Optimizer},
	{regexp.MustCompile(`(?i)embedding|index|gather|scatter|sort|topk|cub::|rocprim|unique`), Embedding},
	{regexp.MustCompile(`(?i)memcpy|memset|copy|transpose|permute|CatArray|contiguous|fillBuffer|tensor_?transform|cast`), Layout},
	{regexp.MustCompile(`(?i)reduce|_red_|_per_|cumsum|scan`), Reduction},
	{regexp.MustCompile(`(?i)elementwise|pointwise|_poi_|gelu|relu|silu|sigmoid|dropout|FillFunctor|distribution`), Elementwise},
}

// Of is the class of a kernel of that name.
func Of(name string) string {
	for _, r := range rules {
		if r.names.MatchString(name) {
			return r.class
		}
	}
	return Other
}
