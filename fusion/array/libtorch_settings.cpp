#include "fusion/array/libtorch_settings.hpp"

#include <ATen/Context.h>

namespace hfta::fusion {

void set_libtorch(const c10::Device& device, Precision precision) {
  if (device.is_cpu()) return;
  at::Context& context = at::globalContext();
  context.setDeterministicCuDNN(true);
  context.setBenchmarkCuDNN(false);
  context.setAllowTF32CuDNN(precision == Precision::kTf32);
  context.setAllowTF32CuBLAS(precision == Precision::kTf32);
}

}  // namespace hfta::fusion
