#pragma once
/// Settings of LibTorch that hold for the whole process.

#include <c10/core/Device.h>

#include "fusion/recipe.hpp"

namespace hfta::fusion {

/// For arrays on a GPU: kernels of cuDNN that give the same bits again, chosen without benchmarks, and TF32 if the
/// precision says so. Leaves all as it is for a CPU.
void set_libtorch(const c10::Device& device, Precision precision);

}  // namespace hfta::fusion
