#pragma once
/// HFTA_BOTH in front of a function that the CPU's loops and the GPU's kernels share: inline on either side.

#ifdef __CUDACC__
#define HFTA_BOTH __host__ __device__ inline
#else
#define HFTA_BOTH inline __attribute__((always_inline))
#endif
