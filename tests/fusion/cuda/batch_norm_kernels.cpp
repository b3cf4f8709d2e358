// The CUDA kernels, compiled for the CPU by fake/cuda_runtime.h.
#include "fusion/cuda/batch_norm_kernels.cu"  // NOLINT
