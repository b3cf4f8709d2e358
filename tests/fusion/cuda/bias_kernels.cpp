// The CUDA kernels, compiled for the CPU by fake/cuda_runtime.h.
#include "fusion/cuda/bias_kernels.cu"  // NOLINT
