"""The classification of kernels by their names and their operators: the smallest matching priority wins."""

import gzip
import json
from collections import Counter

import duckdb
import pytest
from cases import Case
from recorded import RECORDED, parameters, recorded

from traceq.store.build import RULES

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
    "applies_to": "VARCHAR",
    "note": "VARCHAR",
}
CLASSIFY = """
    SELECT name,
           coalesce(arg_min(category, priority), 'other'),
           coalesce(arg_min(origin, priority), 'unknown'),
           coalesce(arg_min(decisive, priority), false),
           min(priority)
    FROM (SELECT DISTINCT unnest(?) AS name) LEFT JOIN rules ON regexp_matches(name, pattern) AND applies_to = ?
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

# What the operators of each category are called; a kernel that its own name does not tell gets the category.
OPERATORS = {
    "gemm": """
        aten::mm aten::addmm aten::bmm aten::baddbmm aten::addbmm aten::mv aten::addmv aten::dot aten::matmul
        aten::_scaled_mm aten::_grouped_mm aten::_int_mm aten::_addmm_activation aten::mm.out aten::linear
    """,
    "conv": """
        aten::conv2d aten::convolution aten::_convolution aten::cudnn_convolution aten::convolution_backward
        aten::cudnn_convolution_transpose aten::_conv_depthwise2d aten::miopen_convolution aten::thnn_conv2d
        aten::_slow_conv2d_forward aten::slow_conv3d aten::cudnn_convolution_backward_weight
    """,
    "attention": """
        aten::scaled_dot_product_attention aten::_scaled_dot_product_flash_attention aten::_flash_attention_forward
        aten::_efficient_attention_backward aten::_scaled_dot_product_cudnn_attention_backward
        aten::_scaled_dot_product_efficient_attention flash_attn::_flash_attn_forward
    """,
    "rnn": "aten::_cudnn_rnn aten::_cudnn_rnn_backward aten::lstm aten::gru aten::lstm_cell aten::miopen_rnn",
    "norm": """
        aten::native_layer_norm aten::layer_norm aten::cudnn_batch_norm aten::native_batch_norm_backward
        aten::_fused_rms_norm aten::instance_norm aten::cudnn_batch_norm_backward aten::group_norm
        aten::native_layer_norm_backward _C::rms_norm _C::fused_add_rms_norm
    """,
    "softmax": "aten::softmax aten::_softmax aten::_log_softmax aten::_softmax_backward_data aten::log_softmax",
    "pool": """
        aten::max_pool2d aten::max_pool2d_with_indices aten::adaptive_avg_pool2d aten::_adaptive_avg_pool2d_backward
        aten::avg_pool2d aten::max_pool2d_with_indices_backward
    """,
    "embedding": "aten::embedding aten::embedding_dense_backward aten::_embedding_bag aten::embedding_bag",
    "loss": """
        aten::nll_loss_forward aten::nll_loss_backward aten::cross_entropy_loss aten::mse_loss aten::mse_loss_backward
        aten::binary_cross_entropy_with_logits aten::smooth_l1_loss aten::kl_div
    """,
    "rng": "aten::native_dropout aten::dropout aten::normal_ aten::uniform_ aten::bernoulli_ aten::rand aten::randn",
    "sort": "aten::sort aten::topk aten::argsort",
    "indexing": """
        aten::index aten::index_select aten::index_put_ aten::_index_put_impl_ aten::gather aten::scatter_add_
        aten::masked_select aten::nonzero aten::index_add_ aten::take aten::upsample_nearest2d
    """,
    "copy": "aten::copy_ aten::clone aten::cat aten::contiguous aten::stack aten::_to_copy aten::constant_pad_nd",
    "fft": "aten::_fft_r2c aten::_fft_c2c aten::fft_rfft aten::stft",
    "quantize": "aten::quantize_per_tensor aten::dequantize aten::fake_quantize_per_tensor_affine",
    "reduction": "aten::sum aten::mean aten::max aten::argmax aten::norm aten::linalg_vector_norm aten::cumsum",
    "elementwise": """
        aten::add aten::add_ aten::mul aten::div aten::relu aten::gelu aten::gelu_backward aten::silu aten::fill_
        aten::zero_ aten::where aten::sub aten::pow aten::_foreach_add_ aten::_fused_adamw_ aten::clamp_min
    """,
}
# Operators that say nothing of the kernels launched in them: they hold any.
WRAPPERS = [
    *("CompiledFunction", "CompiledFunctionBackward", "Torch-Compiled Region: 0/0", "## Call CompiledFxGraph abc ##"),
    *(
        "TorchDynamo Cache Lookup",
        "AOTDispatcher Runtime Wrapper Prologue",
        "Pregraph bytecode",
        "_compile.compile_inner",
    ),
    *(
        "autograd::engine::evaluate_function: MmBackward0",
        "autograd::engine::evaluate_function: CompiledFunctionBackward",
    ),
    *("autograd::engine::evaluate_function: torch::autograd::AccumulateGrad", "MmBackward0", "AddmmBackward0"),
    *("ConvolutionBackward0", "NativeLayerNormBackward0", "torch::autograd::AccumulateGrad"),
    *("vllm::moe_forward", "vllm::unified_attention_with_output", "SplitLookupFunction", "triton_poi_fused_add_0"),
    *("Optimizer.step#AdamW.step", "ProfilerStep#3", "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"),
    *("nccl:all_reduce", "c10d::allreduce_", "DistributedDataParallel.forward", "record_param_comms", "my_op", ""),
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


def classify(con, names, what="kernel"):
    rows = con.execute(CLASSIFY, [list(names), what]).fetchall()
    return {name: tuple(rest) for name, *rest in rows}


@pytest.fixture(scope="module")
def by_name(connection):
    return classify(connection, [name for name, _, _ in CASES])


@pytest.fixture(scope="module")
def by_op(connection):
    return classify(connection, [*" ".join(OPERATORS.values()).split(), *WRAPPERS], "op")


@pytest.mark.parametrize("category", OPERATORS)
def test_operators(by_op, category):
    names = OPERATORS[category].split()
    assert {name: by_op[name][:3] for name in names} == dict.fromkeys(names, (category, "unknown", False))


def test_wrappers_say_nothing(by_op):
    assert {name: by_op[name][3] for name in WRAPPERS} == dict.fromkeys(WRAPPERS)


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


def test_no_rule_is_dead(connection, by_name, by_op):
    every = {row[0] for row in connection.execute("SELECT priority FROM rules").fetchall()}
    assert every - {row[3] for row in [*by_name.values(), *by_op.values()]} == set()


def test_a_rule_is_for_names_of_kernels_or_of_operators(connection):
    rows = connection.execute("SELECT DISTINCT applies_to, decisive FROM rules ORDER BY ALL").fetchall()
    assert rows == [("kernel", False), ("kernel", True), ("op", False)]


def kernel_time_by_name(path):
    trace = json.loads(gzip.decompress(path.read_bytes()).decode("utf-8", "replace"), strict=False)
    events = trace["traceEvents"] if isinstance(trace, dict) else trace
    times: Counter[str] = Counter()
    for event in events:
        if event.get("ph") == "X" and event.get("cat") in ("kernel", "Kernel"):
            times[event["name"]] += event.get("dur", 0)
    return times


@pytest.mark.parametrize("path", parameters(recorded(), RECORDED))
def test_little_of_a_real_trace_is_other(connection, path):
    times = kernel_time_by_name(path)
    found = classify(connection, times)
    left = {name: time for name, time in times.items() if found[name][0] == "other"}
    share = sum(left.values()) / (times.total() or 1)
    print(f"{share:7.2%} {path.name} {sorted(left, key=left.get, reverse=True)[:5]}")
    assert share < REAL_TRACE_LIMIT


# (operator around the launch or None, launch call, kernel) and the category, its source and the origin that follow.
SGEMM = "ampere_sgemm_128x64_tn"
ADD = "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float> >(int)"
RUNTIME, DRIVER, GRAPH = "cudaLaunchKernel", "cuLaunchKernel", "cudaGraphLaunch"
WITH_OPERATOR = {
    "nothing around it": ((None, RUNTIME, SGEMM), ("gemm", "name", "cublas")),
    "a weak name agrees": (("aten::mm", RUNTIME, SGEMM), ("gemm", "op", "cublas")),
    "a product in a convolution": (("aten::cudnn_convolution", RUNTIME, SGEMM), ("conv", "op", "cublas")),
    "a product in an RNN": (("aten::_cudnn_rnn", RUNTIME, SGEMM), ("rnn", "op", "cublas")),
    "a decisive name in a product": (("aten::addmm", RUNTIME, ADD), ("elementwise", "name", "aten")),
    "a decisive name in a convolution": (("aten::convolution_backward", RUNTIME, ADD), ("elementwise", "name", "aten")),
    "generated code in a product": (
        ("aten::mm", DRIVER, "triton_poi_fused_add_0"),
        ("fused_pointwise", "name", "inductor"),
    ),
    "a collective in a product": (("aten::mm", RUNTIME, "ncclDevKernel_SendRecv"), ("comm", "name", "nccl")),
    "a name that says nothing": (("aten::_softmax", RUNTIME, "what_is_it"), ("softmax", "op", "unknown")),
    "neither says anything": (("MmBackward0", RUNTIME, "what_is_it"), ("other", "none", "unknown")),
    "a wrapper": (("CompiledFunction", RUNTIME, SGEMM), ("gemm", "name", "cublas")),
    "a replay in an operator": (("aten::add", GRAPH, SGEMM), ("gemm", "name", "cublas")),
    "a replay of what is not known": (("aten::mm", GRAPH, "what_is_it"), ("other", "none", "unknown")),
    "the user's Triton, by its launcher": ((None, DRIVER, "add_kernel"), ("other", "none", "triton")),
    "the user's Triton with a word": ((None, DRIVER, "my_softmax"), ("softmax", "name", "triton")),
    "the user's Triton in an operator of theirs": (("mine::add", DRIVER, "add_kernel"), ("other", "none", "triton")),
    "a library that calls the driver": ((None, DRIVER, SGEMM), ("gemm", "name", "cublas")),
    "C++ that calls the driver": ((None, DRIVER, "void mine::add<float>(float*)"), ("other", "none", "unknown")),
    "a plain name in ATen": (("aten::mm", DRIVER, "add_kernel"), ("gemm", "op", "unknown")),
}


@pytest.fixture(scope="module")
def classified(tmp_path_factory):
    """{kernel in WITH_OPERATOR: (category, source, origin)}, each launched in a thread of its own."""
    events = []
    for number, ((op, call, kernel), _) in enumerate(WITH_OPERATOR.values(), 1):
        where = {"ph": "X", "pid": 1, "tid": number}
        if op:
            events.append(where | {"cat": "cpu_op", "name": op, "ts": 10, "dur": 10, "args": {}})
        args = {"correlation": number}
        events.append(where | {"cat": "cuda_runtime", "name": call, "ts": 15, "dur": 2, "args": args})
        where = {"ph": "X", "pid": 0, "tid": 7, "ts": 100 * number, "dur": 1}
        events.append(where | {"cat": "kernel", "name": kernel, "args": args | {"device": 0, "stream": 7}})
    return in_a_store(events, tmp_path_factory.mktemp("rules"))


def in_a_store(events, folder):
    """(category, source, origin) of the kernels of a trace in their order."""
    path = folder / "x.json"
    path.write_text(json.dumps({"traceEvents": events}), "utf-8")
    with Case([path], folder / "s.duckdb") as case:
        return case.con.execute("SELECT category, category_source, origin FROM kernels ORDER BY start_ns").fetchall()


@pytest.mark.parametrize("name", WITH_OPERATOR)
def test_name_and_operator_together(classified, name):
    assert classified[list(WITH_OPERATOR).index(name)] == WITH_OPERATOR[name][1]


@pytest.mark.parametrize("args", [{"kernel_backend": "triton"}, {"kernel_file": "x.py"}], ids=str)
def test_an_operator_that_launches_triton_says_so(args, tmp_path):
    kernel = {"ph": "X", "cat": "kernel", "pid": 0, "tid": 7, "ts": 100, "dur": 1}
    events = [
        {"ph": "X", "cat": "cpu_op", "name": "add_kernel", "pid": 1, "tid": 1, "ts": 10, "dur": 10, "args": args},
        {
            "ph": "X",
            "cat": "cuda_runtime",
            "name": RUNTIME,
            "pid": 1,
            "tid": 1,
            "ts": 15,
            "dur": 2,
            "args": {"correlation": 1},
        },
        kernel | {"name": "add_kernel", "args": {"device": 0, "stream": 7, "correlation": 1}},
    ]
    assert in_a_store(events, tmp_path) == [("other", "none", "triton")]
