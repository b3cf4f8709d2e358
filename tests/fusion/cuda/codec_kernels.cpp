// The CUDA kernels, compiled for the CPU by fake/cuda_runtime.h.
#include "fusion/cuda/codec_kernels.cu"  // NOLINT
