// The CUDA kernels, compiled for the CPU by fake/cuda_runtime.h.
#include "fusion/cuda/embedding_kernels.cu"  // NOLINT
