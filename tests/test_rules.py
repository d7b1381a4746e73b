"""The kernel classification by name: one table of patterns, the smallest matching priority wins."""

import gzip
import json
from collections import Counter
from pathlib import Path

import duckdb
import pytest

RULES = Path(__file__).parents[1] / "traceq" / "store" / "rules.csv"
REAL_TRACES = Path(__file__).parents[2] / "shared" / "data"
REAL_TRACE_LIMIT = 0.03

CATEGORIES = {
    *("gemm", "conv", "attention", "rnn", "norm", "softmax", "pool", "reduction", "elementwise", "copy"),
    *("indexing", "embedding", "rng", "sort", "quantize", "moe", "fft", "loss", "comm", "other"),
    *("fused_pointwise", "fused_reduction", "fused_foreach"),
}
ORIGINS = {
    *("cublas", "cutlass", "cudnn", "flash", "aten", "inductor", "triton", "nccl", "rocm", "custom"),
    "unknown",
}
COLUMNS = {
    "priority": "INTEGER",
    "pattern": "VARCHAR",
    "category": "VARCHAR",
    "origin": "VARCHAR",
    "decisive": "BOOLEAN",
    "note": "VARCHAR",
}
CLASSIFY = """
    SELECT name,
           coalesce(arg_min(category, priority), 'other'),
           coalesce(arg_min(origin, priority), 'unknown'),
           coalesce(arg_min(decisive, priority), false),
           min(priority)
    FROM (SELECT DISTINCT unnest(?) AS name) LEFT JOIN rules ON regexp_matches(name, pattern)
    GROUP BY name
"""

LONG_GEMM = (
    "_ZN7cutlass13device_kernelINS_4gemm6kernel13GemmUniversalINS1_17GroupProblemShapeIN4cute5tupleIJlllEEEEE"
    + "".join(f"NS5_1CILi{i}EEE" for i in range(100))
    + "EEEvNT_6ParamsE"
)
LONG_OTHER = (
    "void long_template_kernel<" + ", ".join(f"std::integral_constant<int, {i}>" for i in range(230)) + ">(float*)"
)

INDUCTOR = [
    ("triton_poi_fused_addmm_relu_2", "fused_pointwise", "inductor"),
    ("triton_poi_fused_convolution_native_batch_norm_0", "fused_pointwise", "inductor"),
    ("triton_poi_fused_all_gather_into_tensor_out_3", "fused_pointwise", "inductor"),
    ("triton_red_fused__fused_rms_norm__to_copy_add_0", "fused_reduction", "inductor"),
    ("triton_per_fused__softmax_masked_fill_21", "fused_reduction", "inductor"),
    ("triton_spl_fused_cumsum_0", "fused_reduction", "inductor"),
    ("triton_for_fused_1", "fused_foreach", "inductor"),
    ("triton_tem_fused_mm_3", "gemm", "inductor"),
    ("triton_tem_fused_addmm_relu_5", "gemm", "inductor"),
    ("triton_tem_fused_bmm_1", "gemm", "inductor"),
    ("triton_tem_fused__scaled_mm_0", "gemm", "inductor"),
    ("triton_tem_fused_convolution_4", "conv", "inductor"),
    ("triton_tem_fused_flex_attention_backward_2", "attention", "inductor"),
    ("triton_tem_fused_0", "other", "inductor"),
    ("triton__0d1d2d3d", "other", "inductor"),
]

COMM = [
    ("ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)", "comm", "nccl"),
    ("ncclKernel_SendRecv_RING_SIMPLE_Sum_int8_t(ncclDevComm*, unsigned long, ncclWork*)", "comm", "nccl"),
    ("ncclDevKernel_Generic_1(ncclDevKernelArgsStorage<4096ul>)", "comm", "nccl"),
    ("mscclKernel_Sum_half_Simple_false(ncclDevComm*, mscclAlgo*, mscclWork*)", "comm", "rocm"),
    ("void (anonymous namespace)::multimem_all_reduce_kernel<c10::BFloat16, 16>(int)", "comm", "aten"),
    ("void vllm::cross_device_reduce_1stage<__nv_bfloat16, 8>(vllm::RankData*)", "comm", "custom"),
    ("void deep_ep::internode_ll::dispatch<true, 7168>(void*)", "comm", "custom"),
    ("void tensorrt_llm::kernels::oneShotAllReduceKernel<float>(float*)", "comm", "custom"),
]

ATTENTION = [
    (
        "void flash::flash_fwd_kernel<Flash_fwd_kernel_traits<128, 128, 64, 4, false, false, "
        "cutlass::bfloat16_t> >(flash::Flash_fwd_params)",
        "attention",
        "flash",
    ),
    (
        "void pytorch_flash::flash_bwd_dq_dk_dv_loop_seqk_parallel_kernel<cutlass::half_t>(int)",
        "attention",
        "flash",
    ),
    (
        "void cutlass::device_kernel<flash::enable_sm90_or_later<flash::FlashAttnFwdSm90<"
        "cutlass::gemm::MainloopSm90> > >(int)",
        "attention",
        "flash",
    ),
    ("_ZN7cutlass13device_kernelIN5flash16FlashAttnFwdSm90INS_4gemm6kernelEEEEEvv", "attention", "flash"),
    (
        "cudnn_generated_fort_native_sdpa_sm90_flash_fprop_wgmma_f16_knob_7_64x128x64_kernel0_0",
        "attention",
        "cudnn",
    ),
    (
        "cudnn_generated_fort_native_sdpa_sm90_flash_bprop_wgmma_f16_knob_26_64x64x64_kernel0_0",
        "attention",
        "cudnn",
    ),
    ("void cudnn::fusion::compute_dot_do_o_specialized<true, 64>(void const*)", "attention", "cudnn"),
    (
        "fmha_cutlassF_bf16_aligned_64x64_rf_sm80(PyTorchMemEffAttention::AttentionKernel::Params)",
        "attention",
        "cutlass",
    ),
    (
        "void cutlass::device_kernel<cutlass::fmha::kernel::Sm100FmhaMla<cutlass::gemm::X> >(int)",
        "attention",
        "cutlass",
    ),
    ("fmhaSm100aKernel_QkvE4m3OBfloat16H64PagedKvCausalP16VarSeqQ128", "attention", "custom"),
    ("void flashinfer::BatchPrefillWithPagedKVCacheKernel<flashinfer::Traits>(int)", "attention", "custom"),
    ("void vllm::paged_attention_v2_kernel<unsigned short, 128>(float*)", "attention", "custom"),
    ("kernel_unified_attention_2d", "attention", "custom"),
    ("void ck_tile::kentry<256, 2, ck_tile::FmhaFwdKernel<ck_tile::Gemm> >(int)", "attention", "rocm"),
    ("attn_fwd", "attention", "triton"),
    ("bwd_kernel_dk_dv.kd", "attention", "triton"),
    ("chunk_gated_delta_rule_fwd_kernel_h_blockdim64", "attention", "custom"),
    (
        "void cutlass::device_kernel<flat::kernel::FlatKernelTmaDeltaRule<cutlass::gemm::X> >(int)",
        "attention",
        "custom",
    ),
    ("void vllm::reshape_and_cache_flash_kernel<__nv_bfloat16, unsigned char>(int)", "indexing", "custom"),
    ("_my_window_attention_fwd", "attention", "custom"),
]

CONVOLUTION = [
    ("sm80_xmma_fprop_implicit_gemm_indexed_tf32f32_nhwckrsc_nchw_tilesize128x128x16_cudnn", "conv", "cudnn"),
    (
        "sm80_xmma_wgrad_implicit_gemm_indexed_tf32f32_tf32f32_f32_execute_kernel_cudnn_train",
        "conv",
        "cudnn",
    ),
    ("sm80_xmma_dgrad_implicit_gemm_tf32f32_execute_kernel_cudnn_infer", "conv", "cudnn"),
    ("volta_scudnn_128x64_relu_medium_nn_v1", "conv", "cudnn"),
    ("cudnn_infer_volta_scudnn_winograd_128x128_ldg1_ldg4_relu_tile148t_nt_v1", "conv", "cudnn"),
    ("void cudnn::winograd_nonfused::winogradForwardData4x4<float, float>(int)", "conv", "cudnn"),
    ("void implicit_convolve_sgemm<float, float, 1024, 6, 7, 3, 3, 5>(int)", "conv", "cudnn"),
    ("void cudnn::detail::dgrad_engine<float, 512, 6, 5, 3, 3, 3, false>(int)", "conv", "cudnn"),
    ("void cudnn::cnn::im2col4d_kernel<float, long>(int)", "conv", "cudnn"),
    (
        "void cutlass__5x_cudnn::Kernel<cutlass_tensorop_s1688fprop_optimized_tf32_64x64>(int)",
        "conv",
        "cudnn",
    ),
    (
        "_ZN19cutlass_cudnn_train6KernelINS_4conv6kernel23ImplicitGemmConvolutionINS_4gemmEEEvv",
        "conv",
        "cudnn",
    ),
    (
        "void cutlass::Kernel2<cutlass::conv::kernel::ImplicitGemmConvolution<cutlass::gemm::X> >(int)",
        "conv",
        "cutlass",
    ),
    ("cask_cudnn::computeOffsetsKernel(cask_cudnn::ComputeOffsetsParams)", "conv", "cudnn"),
    ("void fft2d_r2c_32x32<float, false, 5u, true>(float2*, cudnn::reduced_divisor)", "conv", "cudnn"),
    ("compute_gemm_pointers(float2**, float2 const*, int)", "conv", "cudnn"),
    ("void at::native::(anonymous namespace)::conv_depthwise2d_forward_kernel<3>(int)", "conv", "aten"),
    ("void at::native::im2col_kernel<float>(long, float const*)", "conv", "aten"),
    ("miopenSp3AsmConv_v21_1_3_gfx9_fp32_f2x3_stride1.kd", "conv", "rocm"),
    (
        "void ck::(anonymous namespace)::kernel_grouped_conv_fwd_xdl_cshuffle_v3<ck::Gemm>(int)",
        "conv",
        "rocm",
    ),
    ("Im2d2Col", "conv", "rocm"),
    ("void causal_conv1d_fwd_kernel<Traits>(ConvParamsBase)", "conv", "custom"),
]

LIBRARIES = [
    ("void split_embedding_codegen_forward_unweighted_kernel<float>(int)", "embedding", "custom"),
    (
        "void fbgemm_gpu::(anonymous namespace)::_compute_FP8_quantize_cuda_kernel<float>(int)",
        "quantize",
        "custom",
    ),
    (
        "void at::native::vectorized_elementwise_kernel<4, fbgemm_gpu::_hfp8_to_float_gpu(int)>",
        "quantize",
        "custom",
    ),
    ("void fbgemm_gpu::permute_2D_data_kernel<false, int, int>(int)", "indexing", "custom"),
    ("void linearize_index_kernel<long>(int)", "indexing", "custom"),
    ("void permute_pooled_embs_kernel<float>(float const*)", "copy", "custom"),
    ("void deep_gemm::transpose_fp32<512, 64>(float const*)", "copy", "custom"),
    ("void at::cuda::detail::prepare_grouped_gemm_data<float>(float*)", "indexing", "custom"),
    ("void moe::combineKernel<Layout::GEMM_MAJOR, 8>(float*)", "moe", "custom"),
    ("void moe::dev::routing::routingIndicesHistogramKernel<moe::dev::X>(int)", "moe", "custom"),
    ("void vllm::moe::topkGatingSoftmax<4, 128, 4, 16, 32, int>(float const*)", "moe", "custom"),
    ("void vllm::moe::moe_align_block_size_kernel<int>(int*)", "moe", "custom"),
    ("fused_moe_kernel", "gemm", "custom"),
    ("void tensorrt_llm::kernels::quantize_with_block_size<(T)2, __nv_bfloat16>(int)", "quantize", "custom"),
    ("void vllm::scaled_fp8_quant_kernel_strided<c10::BFloat16>(int)", "quantize", "custom"),
    ("void vllm::rotary_embedding_kernel<c10::BFloat16, true>(long const*)", "elementwise", "custom"),
    ("void vllm::act_and_mul_kernel<c10::BFloat16, &vllm::silu_kernel>(int)", "elementwise", "custom"),
    (
        "std::enable_if<(8)>(0), void>::type vllm::fused_add_rms_norm_kernel<c10::BFloat16, 8>(int)",
        "norm",
        "custom",
    ),
    ("void flashinfer::norm::FusedAddRMSNormKernel<8u, float>(float*)", "norm", "custom"),
    ("__amd_rocclr_copyBuffer", "copy", "rocm"),
    ("__amd_rocclr_fillBufferAligned.kd", "elementwise", "rocm"),
    ("void rocprim::detail::radix_sort_onesweep_kernel<int>(int)", "sort", "rocm"),
    ("void rocprim::ROCPRIM_400000_NS::detail::partition_kernel<X>(lookback_scan)", "indexing", "rocm"),
    ("void rocprim::detail::trampoline_kernel<rocprim::detail::reduce_impl<int> >(int)", "reduction", "rocm"),
    ("MIOpenBatchNormFwdTrainSpatial.kd", "norm", "rocm"),
    ("mloPoolingG", "pool", "rocm"),
    ("void ck_tile::kentry<1, ck_tile::Rmsnorm2dFwd<ck_tile::Gemm> >(int)", "norm", "rocm"),
    ("void ck_tile::kentry<1, ck_tile::MoeSortingKernel<int> >(int)", "moe", "custom"),
]

ATEN = [
    ("vectorized_elementwise_kernel", "elementwise", "aten"),
    (
        "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float> >",
        "elementwise",
        "aten",
    ),
    (
        "void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<float> > [clone .kd]",
        "elementwise",
        "aten",
    ),
    ("_ZN2at6native29vectorized_elementwise_kernelILi4ENS0_15CUDAFunctor_addIfEEEEvi", "elementwise", "aten"),
    (
        "void at::native::vectorized_elementwise_kernel<4, my::GemmEpilogue<float> >(int)",
        "elementwise",
        "aten",
    ),
    (
        "void at::native::(anonymous namespace)::multi_tensor_apply_kernel<FusedAdam>(int)",
        "elementwise",
        "aten",
    ),
    (
        "void multi_tensor_apply_kernel<TensorListMetadata<4>, AdamFunctor<float> >(int)",
        "elementwise",
        "custom",
    ),
    ("void at::native::triu_tril_kernel<bool, int, true, 8, false>(int)", "elementwise", "aten"),
    ("void at::native::elementwise_kernel<128, 4, direct_copy_kernel_cuda(int)::lambda>", "copy", "aten"),
    ("void at::native::<unnamed>::CatArrayBatchedCopy_vectorized<float, (int)2>(int)", "copy", "aten"),
    (
        "void at::native::(anonymous namespace)::multi_tensor_apply_kernel<at::native::Copy<float> >",
        "copy",
        "aten",
    ),
    (
        "void at::native::(anonymous namespace)::nll_loss_forward_reduce_cuda_kernel_2d<float>(int)",
        "loss",
        "aten",
    ),
    ("void at::native::vectorized_elementwise_kernel<4, at::native::mse_kernel_cuda(int)>", "loss", "aten"),
    ("void at::native::(anonymous namespace)::fused_dropout_kernel_vec<float>(int)", "rng", "aten"),
    (
        "void at::native::(anonymous namespace)::distribution_elementwise_grid_stride_kernel<float>(int)",
        "rng",
        "aten",
    ),
    ("void at::native::(anonymous namespace)::cunn_SoftMaxForward<8, float>(int)", "softmax", "aten"),
    ("void (anonymous namespace)::softmax_warp_forward<float, float, float, 10>(int)", "softmax", "aten"),
    ("void at::native::(anonymous namespace)::vectorized_layer_norm_kernel<float>(int)", "norm", "aten"),
    (
        "void at::native::(anonymous namespace)::GammaBetaBackwardCUDAKernelTemplate<float>(int)",
        "norm",
        "aten",
    ),
    ("void at::native::batch_norm_collect_statistics_kernel<float>(int)", "norm", "aten"),
    (
        "void at::native::elementwise_kernel<128, 4, GroupNormKernelImplInternal<float>::lambda>",
        "norm",
        "aten",
    ),
    ("void at::native::(anonymous namespace)::max_pool_forward_nchw<float>(int)", "pool", "aten"),
    ("void at::native::(anonymous namespace)::adaptive_average_pool<float>(int)", "pool", "aten"),
    ("void at::native::(anonymous namespace)::kernel::lstm_cell_forward<float>(int)", "rnn", "aten"),
    (
        "void at::native::(anonymous namespace)::embedding_backward_feature_kernel<float>(int)",
        "embedding",
        "aten",
    ),
    (
        "void at::native::(anonymous namespace)::EmbeddingBag_updateOutputKernel_max<float>(int)",
        "embedding",
        "aten",
    ),
    (
        "void at::native::index_elementwise_kernel<128, 4, at::native::gpu_index_kernel>(int)",
        "indexing",
        "aten",
    ),
    ("void at::native::_scatter_gather_elementwise_kernel<128, 4>(int)", "indexing", "aten"),
    (
        "void at::native::(anonymous namespace)::searchsorted_cuda_kernel<float, long>(int)",
        "indexing",
        "aten",
    ),
    ("void at::native::bitonicSortKVInPlace<2, -1, 16>(int)", "sort", "aten"),
    ("void at::native::sbtopk::gatherTopK<float, unsigned int, 1, false>(int)", "sort", "aten"),
    ("void cub::DeviceRadixSortOnesweepKernel<cub::DeviceRadixSortPolicy<long> >(int)", "sort", "aten"),
    ("void cub::DeviceSelectSweepKernel<cub::Policy>(int)", "indexing", "aten"),
    (
        "void thrust::cuda_cub::core::_kernel_agent<thrust::__unique::UniqueAgent<X> >(int)",
        "indexing",
        "aten",
    ),
    ("void at_cuda_detail::cub::DeviceScanKernel<cub::AgentScanPolicy<128> >(int)", "reduction", "aten"),
    ("void cub::DeviceReduceSingleTileKernel<cub::Policy>(int)", "reduction", "aten"),
    (
        "void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float, NormTwoOps> >(int)",
        "reduction",
        "aten",
    ),
    ("void at::native::tensor_kernel_scan_innermost_dim<float>(int)", "reduction", "aten"),
    ("void at::native::(anonymous namespace)::cdist_kernel_cuda_impl<float>(int)", "other", "aten"),
]

CUDNN_AND_FFT = [
    ("void cudnn::ops::nchwToNhwcKernel<float, float, float, false, true>(int)", "copy", "cudnn"),
    ("void cudnn::bn_fw_tr_1C11_kernel_NCHW<float, float, 512, true, 1>(int)", "norm", "cudnn"),
    ("void cudnn::ops::pooling_fw_4d_kernel<float, float>(int)", "pool", "cudnn"),
    ("void cudnn::ops::softmax_fw_kernel<2, float, float>(int)", "softmax", "cudnn"),
    ("void LSTM_elementWise_fp<float, float, float>(int)", "rnn", "cudnn"),
    ("void elemWiseRNNcell<float, float, float, (cudnnRNNMode_t)2>(int)", "rnn", "cudnn"),
    ("void cudnn::ops::scalePackedTensor_kernel<float, float>(int)", "elementwise", "cudnn"),
    ("void regular_fft<192u, EPT<12u, 16u>, 16u, 2u>(int)", "fft", "unknown"),
    ("void cudnn::ops::some_new_kernel<float>(int)", "other", "cudnn"),
]

GEMM = [
    ("nvjet_sm90_tst_192x128_64x5_1x2_h_bz_coopB_bias_TNT", "gemm", "cublas"),
    ("nvjet_tst_128x256_64x4_2x1_v_bz_coopA_NNT", "gemm", "cublas"),
    ("nvjet_sm100_hsh_256x128_64x4_2x1_2cta_v_bz_TNN", "gemm", "cublas"),
    ("sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64_kernel__5x_cublas", "gemm", "cublas"),
    ("sm90_xmma_gemm_bf16", "gemm", "cublas"),
    ("sm80_xmma_gemm_f16f16_f16f32_f32_tn_n_tilesize128x128x64_execute_kernel_cudnn", "gemm", "cudnn"),
    ("ampere_sgemm_128x64_tn", "gemm", "cublas"),
    ("ampere_fp16_s16816gemm_fp16_64x64_ldg8_f2f_stages_64x5_nn", "gemm", "cublas"),
    ("void splitKreduce_kernel<float, float>(cublasSplitKParams<float>)", "gemm", "cublas"),
    ("void cublasLt::splitKreduce_kernel<32, 16, int>(float*)", "gemm", "cublas"),
    ("void gemv2T_kernel_val<int, int, float>(int)", "gemm", "cublas"),
    (
        "std::enable_if<!(false), void>::type internal::gemvx::kernel<int, cublasGemvParams<float> >(int)",
        "gemm",
        "cublas",
    ),
    ("void dot_kernel<float, 128, 0, cublasDotParams<float> >(int)", "gemm", "cublas"),
    ("void scal_kernel<float, float, 1, false>(cublasTransposeParams<float>)", "gemm", "cublas"),
    (
        "void cutlass::Kernel2<cutlass_80_tensorop_bf16_s16816gemm_relu_bf16_128x128_32x4_tn_align8>(int)",
        "gemm",
        "cutlass",
    ),
    ("void cutlass::Kernel<cutlass_80_tensorop_gemm_x>(Params)", "gemm", "cutlass"),
    (
        "void cutlass::device_kernel<at::cuda::detail::enable_3x<cutlass::gemm::kernel::Universal<int> > >",
        "gemm",
        "cutlass",
    ),
    ("cutlass_80_tensorop_gemm", "gemm", "cutlass"),
    ("cutlass3x_sm90_tensorop_s64x128x16gemm_bf16", "gemm", "cutlass"),
    ("_ZN7cutlass11device_gemmEv", "gemm", "cutlass"),
    (LONG_GEMM, "gemm", "cutlass"),
    ("Cijk_Ailk_Bljk_HHS_BH", "gemm", "rocm"),
    ("Cijk_Alik_Bljk_SB_MT64.kd", "gemm", "rocm"),
    ("void ck::kernel_gemm_xdl_cshuffle_v3<ck::GridwiseGemm>(int)", "gemm", "rocm"),
    ("bmm_Bfloat16_MxE2m1MxE4m3_Fp32_t128x16x256u2_s3_dynBatch_sm100f", "gemm", "custom"),
    ("void deep_gemm::sm90_fp8_gemm_1d2d_impl<0u, 7168u>(float*)", "gemm", "custom"),
    ("void marlin::Marlin<__nv_bfloat16, 256>(int)", "gemm", "custom"),
    ("void fbgemm_gpu::grouped_gemm_kernel<c10::Half>(c10::Half*)", "gemm", "custom"),
    ("_ZN10fbgemm_gpu12rowwise_gemmIfEEvPf", "gemm", "custom"),
    ("_Z11sgemm_naivePfS_S_", "gemm", "custom"),
    ("matmul_kernel", "gemm", "custom"),
    ("void (anonymous namespace)::my_gemm<float>(float*)", "gemm", "custom"),
    ("void cublasx::trsm_kernel<float>(cublasHandle)", "other", "cublas"),
    ("void cutlass::Kernel<other>(int)", "other", "cutlass"),
    ("rocblas_set_matrix_kernel", "other", "rocm"),
]

WORDS = [
    ("rmsnorm_residual", "norm", "custom"),
    ("_layer_norm_fwd_1pass_kernel", "norm", "custom"),
    ("softmax_kernel", "softmax", "custom"),
    ("void scaled_masked_softmax_warp_forward<float>(float*)", "softmax", "custom"),
    ("liger_cross_entropy_kernel", "loss", "custom"),
    ("void my::lstm_step<float>(float*)", "rnn", "custom"),
    ("_quantize_rowwise", "quantize", "custom"),
    ("_rope_fwd", "elementwise", "custom"),
    ("_swiglu_forward_kernel", "elementwise", "custom"),
    ("_embedding_forward_kernel", "embedding", "custom"),
    ("_seeded_dropout", "rng", "custom"),
    ("my_topk", "sort", "custom"),
    ("_index_fwd", "indexing", "custom"),
    ("block_reduce_all", "reduction", "custom"),
    ("_transpose_tile", "copy", "custom"),
]

NOT_GEMM_BUT = [
    ("void fbgemm_gpu::some_kernel<int>(int)", "other", "unknown"),
    ("_ZN10fbgemm_gpu11some_kernelIiEEvi", "other", "unknown"),
    ("void k<cutlass::gemm::GemmCoord>(float*)", "other", "unknown"),
    ("void k(cutlass::gemm::GemmCoord)", "other", "unknown"),
    ("void my_block::run<gemm::Tile>(float*)", "other", "unknown"),
    ("_ZN2my1kIN7cutlass4gemm9GemmCoordEEEvPf", "other", "unknown"),
    ("summation_comm_hammer", "other", "unknown"),
    ("prefill_step", "other", "unknown"),
    ("quantile_step", "other", "unknown"),
    ("k_g1", "other", "unknown"),
    ("void k<int, [lambda at model.py:3]>(float*)", "other", "unknown"),
    ("[clone .kd]", "other", "unknown"),
    ("", "other", "unknown"),
    (LONG_OTHER, "other", "unknown"),
]

CASES = [
    *INDUCTOR,
    *COMM,
    *ATTENTION,
    *CONVOLUTION,
    *LIBRARIES,
    *ATEN,
    *CUDNN_AND_FFT,
    *GEMM,
    *WORDS,
    *NOT_GEMM_BUT,
]

DECISIVE = [
    "ncclDevKernel_SendRecv",
    "triton_poi_fused_add_0",
    "triton_tem_fused_mm_3",
    "cudnn_generated_fort_native_sdpa_sm90_flash_fprop",
    "fmha_cutlassF_f32_aligned_64x64_rf_sm80",
    "void at::native::reduce_kernel<512, 1>(int)",
    "void at::native::elementwise_kernel<128, 4>(int)",
    "void cudnn::ops::nchwToNhwcKernel<float>(int)",
    "void cub::DeviceRadixSortOnesweepKernel<int>(int)",
]
THE_OP_DECIDES = [
    "ampere_sgemm_128x64_tn",
    "nvjet_tst_128x64",
    "Cijk_Ailk_Bljk_HHS_BH",
    "void cutlass::Kernel2<cutlass_80_tensorop_s1688gemm_x>(int)",
    "void at::native::(anonymous namespace)::indexSelectSmallIndex<float>(int)",
    "void at::native::im2col_kernel<float>(int)",
    "rmsnorm_residual",
    "no_rule_for_this",
]


@pytest.fixture(scope="module")
def connection():
    with duckdb.connect() as con:
        con.execute(
            "CREATE TEMP TABLE rules AS SELECT * FROM read_csv(?, header = true, delim = ',', quote = '\"', "
            "escape = '\"', columns = ?)",
            [str(RULES), COLUMNS],
        )
        yield con


def classify(con, names):
    rows = con.execute(CLASSIFY, [list(names)]).fetchall()
    return {name: tuple(rest) for name, *rest in rows}


@pytest.fixture(scope="module")
def by_name(connection):
    return classify(connection, [name for name, _, _ in CASES])


@pytest.mark.parametrize(("name", "category", "origin"), CASES, ids=lambda value: value[:60])
def test_name(by_name, name, category, origin):
    assert by_name[name][:2] == (category, origin)


@pytest.mark.parametrize("name", DECISIVE)
def test_name_wins_over_the_op(connection, name):
    assert classify(connection, [name])[name][2] is True


@pytest.mark.parametrize("name", THE_OP_DECIDES)
def test_op_wins_over_the_name(connection, name):
    assert classify(connection, [name])[name][2] is False


def test_names_are_listed_once():
    assert [name for name, count in Counter(name for name, _, _ in CASES).items() if count > 1] == []


def test_long_names_are_as_long_as_real_ones():
    assert len(LONG_GEMM) > 1300
    assert len(LONG_OTHER) > 7000


def test_only_the_six_products_of_ten_common_names(connection):
    products = {
        "ampere_sgemm_128x64_tn",
        "sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64_warpgroupsize1x1x1_kernel__5x_cublas",
        "void cutlass::Kernel2<cutlass_80_tensorop_bf16_s16816gemm_relu_bf16_128x128_32x4_tn_align8>"
        "(cutlass_80_tensorop_bf16_s16816gemm_relu_bf16_128x128_32x4_tn_align8::Params)",
        "nvjet_tst_128x256_64x4_2x1_v_bz_coopA_NNT",
        "triton_tem_fused_mm_3",
        "Cijk_Ailk_Bljk_BBS_BH_MT128x128x32_MI32x32x8x1_SN_1LDSB0",
    }
    others = {
        "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>, "
        "std::array<char*, 3ul> >(int, at::native::CUDAFunctor_add<float>, std::array<char*, 3ul>)",
        "triton_poi_fused_addmm_relu_2",
        "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
        "void flash::flash_fwd_kernel<Flash_fwd_kernel_traits<128, 128, 64, 4, false, false, "
        "cutlass::bfloat16_t, Flash_kernel_traits<128, 128, 64, 4, cutlass::bfloat16_t> >, false, true>"
        "(flash::Flash_fwd_params)",
    }
    found = classify(connection, products | others)
    assert {name for name, row in found.items() if row[0] == "gemm"} == products


def test_long_names_that_differ_at_the_end_stay_apart(connection):
    pair = [LONG_OTHER + suffix for suffix in "ab"]
    assert len(classify(connection, pair)) == 2


def test_vocabulary(connection):
    rows = connection.execute("SELECT category, origin FROM rules").fetchall()
    assert {category for category, _ in rows} == CATEGORIES
    assert {origin for _, origin in rows} == ORIGINS


def test_every_field_is_filled(connection):
    nulls = [f"count(*) FILTER ({column} IS NULL OR {column}::VARCHAR = '')" for column in COLUMNS]
    assert connection.execute(f"SELECT {', '.join(nulls)} FROM rules").fetchone() == (0,) * len(COLUMNS)


def test_priorities_are_unique_rise_and_leave_room_for_user_rules(connection):
    priorities = [row[0] for row in connection.execute("SELECT priority FROM rules").fetchall()]
    assert priorities == sorted(set(priorities))
    assert priorities[0] >= 1000
    assert all(priority % 10 == 0 for priority in priorities)


def test_every_pattern_compiles_and_none_matches_everything(connection):
    patterns = [row[0] for row in connection.execute("SELECT pattern FROM rules").fetchall()]
    for pattern in patterns:
        assert connection.execute("SELECT regexp_matches('~', ?)", [pattern]).fetchone() == (False,)
    assert len(set(patterns)) == len(patterns)


def test_no_rule_is_dead(connection, by_name):
    every = {row[0] for row in connection.execute("SELECT priority FROM rules").fetchall()}
    assert every - {row[3] for row in by_name.values()} == set()


def kernel_time_by_name(path):
    trace = json.loads(gzip.decompress(path.read_bytes()).decode("utf-8", "replace"), strict=False)
    events = trace["traceEvents"] if isinstance(trace, dict) else trace
    times: Counter[str] = Counter()
    for event in events:
        if event.get("ph") == "X" and event.get("cat") in ("kernel", "Kernel"):
            times[event["name"]] += event.get("dur", 0)
    return times


def real_traces():
    found = sorted([*REAL_TRACES.glob("h200/*.json.gz"), *REAL_TRACES.glob("public/**/*.json.gz")])
    absent = pytest.param(None, marks=pytest.mark.skip(reason="the recorded traces are not here"))
    return [pytest.param(path, id=str(path.relative_to(REAL_TRACES))) for path in found] or [absent]


@pytest.mark.parametrize("path", real_traces())
def test_little_of_a_real_trace_is_other(connection, path):
    times = kernel_time_by_name(path)
    found = classify(connection, times)
    left = {name: time for name, time in times.items() if found[name][0] == "other"}
    share = sum(left.values()) / (times.total() or 1)
    print(f"{share:7.2%} {path.name} {sorted(left, key=left.get, reverse=True)[:5]}")
    assert share < REAL_TRACE_LIMIT
