package tensor

import "strings"

// Operators whose shapes are read: those that do arithmetic or move data. Views are
// not among them (they move nothing, and what they are of has a shape of its own).
// A name stands for all its overloads, in place (with a "_" behind it) or not. The
// names are those of native_functions.yaml of 1.13 and 2.15.
var families = map[string]string{
	"matmul": `mm bmm addmm addbmm baddbmm mv addmv dot vdot inner matmul linear linear_backward addr ger outer
		einsum tensordot bilinear _scaled_mm _addmm_activation _int_mm kron`,
	"convolution": `convolution _convolution convolution_overrideable convolution_backward conv1d conv2d conv3d
		conv_transpose1d conv_transpose2d conv_transpose3d thnn_conv2d _slow_conv2d_forward _slow_conv2d_backward
		mkldnn_convolution cudnn_convolution cudnn_convolution_transpose miopen_convolution _conv_depthwise2d`,
	"attention": `scaled_dot_product_attention _scaled_dot_product_attention _scaled_dot_product_attention_math
		_scaled_dot_product_flash_attention _scaled_dot_product_flash_attention_backward
		_scaled_dot_product_flash_attention_for_cpu _scaled_dot_product_flash_attention_for_cpu_backward
		_scaled_dot_product_efficient_attention _scaled_dot_product_efficient_attention_backward
		_scaled_dot_product_cudnn_attention _scaled_dot_product_cudnn_attention_backward
		_native_multi_head_attention _transformer_encoder_layer_fwd`,
	"embedding": `embedding embedding_backward embedding_dense_backward embedding_renorm embedding_bag
		_embedding_bag _embedding_bag_forward_only index index_select index_add index_copy index_fill index_put
		_index_put_impl gather gather_backward scatter scatter_add scatter_reduce take take_along_dim masked_select
		masked_scatter one_hot`,
	"normalisation": `layer_norm native_layer_norm native_layer_norm_backward batch_norm native_batch_norm
		_native_batch_norm_legit native_batch_norm_backward _batch_norm_impl_index cudnn_batch_norm
		cudnn_batch_norm_backward miopen_batch_norm group_norm native_group_norm native_group_norm_backward
		instance_norm rms_norm _fused_rms_norm normalize weight_norm _weight_norm_interface local_response_norm
		softmax _softmax _softmax_backward_data log_softmax _log_softmax _log_softmax_backward_data
		_masked_softmax`,
	"elementwise": `abs add addcdiv addcmul bitwise_and bitwise_not bitwise_or bitwise_xor ceil clamp clamp_max
		clamp_min cos div divide elu elu_backward eq erf exp exp2 expm1 fill floor floor_divide fmod frac ge gelu
		gelu_backward gt hardsigmoid hardswish hardswish_backward hardtanh hardtanh_backward isfinite isinf isnan le
		leaky_relu leaky_relu_backward lerp log log10 log1p log2 logical_and logical_not logical_or lt masked_fill
		maximum minimum mish mul multiply ne neg nan_to_num pow prelu reciprocal relu relu6 remainder round rsqrt rsub
		sigmoid sigmoid_backward sign silu silu_backward sin softplus softplus_backward sqrt square sub subtract tanh
		tanh_backward threshold threshold_backward true_divide trunc where xlogy zero dropout native_dropout
		native_dropout_backward bernoulli normal uniform _amp_foreach_non_finite_check_and_unscale glu glu_backward`,
	"reduction": `all amax amin any argmax argmin count_nonzero cumprod cumsum logsumexp max mean min norm
		linalg_vector_norm prod std std_mean sum topk sort var var_mean median isclose equal cross_entropy
		cross_entropy_loss nll_loss nll_loss_nd nll_loss_forward nll_loss_backward nll_loss2d nll_loss2d_forward
		nll_loss2d_backward mse_loss mse_loss_backward l1_loss smooth_l1_loss smooth_l1_loss_backward huber_loss
		binary_cross_entropy binary_cross_entropy_backward binary_cross_entropy_with_logits kl_div
		max_pool1d max_pool2d max_pool2d_with_indices max_pool2d_with_indices_backward max_pool3d avg_pool1d
		avg_pool2d avg_pool2d_backward adaptive_avg_pool1d adaptive_avg_pool2d _adaptive_avg_pool2d
		_adaptive_avg_pool2d_backward adaptive_max_pool2d upsample_bilinear2d upsample_bilinear2d_backward
		upsample_nearest2d upsample_nearest2d_backward grid_sampler_2d ctc_loss lstm gru rnn_tanh
		_local_scalar_dense`,
	"copy": `copy clone contiguous to _to_copy cat concat stack repeat repeat_interleave roll flip tril triu
		constant_pad_nd pad reflection_pad2d replication_pad2d im2col col2im pixel_shuffle pixel_unshuffle
		to_mkldnn to_dense resolve_conj`,
}

var shaped = func() map[string]bool {
	names := map[string]bool{}
	for _, list := range families {
		for name := range strings.FieldsSeq(list) {
			names[name] = true
		}
	}
	return names
}()

// Shaped reports whether the shapes of an operator ("aten::addmm", "aten::add_") are read.
func Shaped(operator string) bool {
	name, ok := strings.CutPrefix(operator, "aten::")
	if !ok {
		return false
	}
	return shaped[name] || shaped[strings.TrimSuffix(name, "_")] || strings.HasPrefix(name, "_foreach_") ||
		strings.HasPrefix(name, "_fused_")
}
