#include <cstdio>

#include "bench/codec/cuda.hpp"

int hfta::bench::on_cuda() {
  std::printf("FAIL: this build has no CUDA kernels: configure where nvcc is found\n");
  return 1;
}
