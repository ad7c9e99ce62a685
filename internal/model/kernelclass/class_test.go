package kernelclass

import "testing"

func TestKernelsOfTwoMakersMeetInOneClass(t *testing.T) {
	for class, names := range map[string][]string{
		GEMM: {"void cutlass::Kernel2<cutlass_80_wmma_tensorop_bf16_s161616gemm_bf16_32x32_128x2_tn_align8>(Params)",
			"Cijk_Ailk_Bljk_BBS_BH_MT128x128x16_SE_K1",
			"nvjet_tst_128x64_64x4_1x2_h_bz_TNT", "sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize64x64x64"},
		Attention: {"void pytorch_flash::flash_fwd_kernel<Flash_fwd_kernel_traits<64>>", "attn_fwd.kd", "aiter::fmha_fwd_hd128_bf16_causal"},
		Convolution: {"igemm_wrw_gtcx3_nhwc_bf16_bx0_ex1_bt64x64x64",
			"_ZN2ck16tensor_operation6device37kernel_batched_gemm_xdlops_bwd_weightINS_47Gridwise",
			"_ZN2ck16tensor_operation6device12_GLOBAL__N_149kernel_grouped_conv_fwd_multiple_abd_xdl_cshuffleINS_34Gridwise",
			"void cutlass__5x_cudnn::Kernel<cutlass_tensorop_bf16_s16816fprop_optimized_bf16_256x64_32x4_nhwc_align8>",
			"sm80_xmma_fprop_implicit_gemm_f16f16", "miopenSp3AsmConv_v30_3_1_gfx94x_fp32_f2x3_stride1.kd",
			"void cudnn::winograd_nonfused::winogradForwardData4x4"},
		Collective:    {"ncclDevKernel_AllReduce_Sum_bf16_RING_LL", "void rcclGenericKernel<1>()", "ncclKernel_Generic"},
		Normalization: {"void at::native::(anonymous namespace)::vectorized_layer_norm_kernel<float>", "MIOpenBatchNormFwdTrainSpatial.kd"},
		Elementwise: {"void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>>", "triton_poi_fused_add_0",
			"void at::native::vectorized_elementwise_kernel<4, at::native::GeluCUDAKernelImpl(at::TensorIteratorBase&, " +
				"at::native::GeluType)::{lambda()#2}::operator()() const>"},
		Reduction: {"void at::native::reduce_kernel<512, 1>", "triton_red_fused_sum_1"},
		Softmax: {"void at::native::(anonymous namespace)::cunn_SoftMaxForwardReg<c10::BFloat16, float, c10::BFloat16>",
			"void (anonymous namespace)::softmax_warp_forward<float>"},
		Layout: {"void cudnn::engines_precompiled::nchwToNhwcKernel<__nv_bfloat16, __nv_bfloat16, float, false, true>",
			"SubTensorOpWithCastTensor1d", "batched_transpose_32x32_half",
			"void at::native::(anonymous namespace)::CatArrayBatchedCopy_contig<at::native::(anonymous namespace)::OpaqueType<2u>, unsigned " +
				"int, 3, 128, 1>", "Memcpy HtoD (Pageable -> Device)", "__amd_rocclr_copyBuffer.kd", "batched_transpose_32x32_dword"},
		Optimizer: {"void at::native::multi_tensor_apply_kernel<TensorListMetadata<4>>", "void lamb_stage_1<float>", "fused_lamb"},
		Other:     {"my_kernel"},
	} {
		for _, name := range names {
			if got := Of(name); got != class {
				t.Errorf("%s: %s, want %s", name, got, class)
			}
		}
	}
}
