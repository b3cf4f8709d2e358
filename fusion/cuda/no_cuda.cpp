// Stands in for slot_kernels.cu where the build has no nvcc.
#include "base/error.hpp"
#include "fusion/cuda/slot_kernels.hpp"

namespace hfta::fusion::cuda {
namespace {

[[noreturn]] void absent() {
  throw Error(ErrorKind::kDevice, "this build has no CUDA kernels: configure where nvcc is found, with HFTA_CUDA=ON");
}

}  // namespace

bool built() { return false; }

void sgd(const SlotRows<float>&, const SgdNumbers<float>*, const unsigned char*, void*) { absent(); }
void sgd(const SlotRows<double>&, const SgdNumbers<double>*, const unsigned char*, void*) { absent(); }
void adam(const SlotRows<float>&, const AdamNumbers<float>*, const unsigned char*, void*) { absent(); }
void adam(const SlotRows<double>&, const AdamNumbers<double>*, const unsigned char*, void*) { absent(); }
void dropout_masks(float*, std::size_t, int, const MaskSource*, std::uint32_t, void*) { absent(); }
void dropout_masks(double*, std::size_t, int, const MaskSource*, std::uint32_t, void*) { absent(); }

}  // namespace hfta::fusion::cuda
