// The CUDA kernels, compiled for the CPU by fake/cuda_runtime.h.
#include "fusion/cuda/columns_kernels.cu"  // NOLINT
