// Stands in for the kernels where the build has no nvcc.
#include "base/error.hpp"
#include "fusion/cuda/attention_kernels.hpp"
#include "fusion/cuda/batch_norm_kernels.hpp"
#include "fusion/cuda/bias_kernels.hpp"
#include "fusion/cuda/codec_kernels.hpp"
#include "fusion/cuda/columns_kernels.hpp"
#include "fusion/cuda/embedding_kernels.hpp"
#include "fusion/cuda/loss_kernels.hpp"
#include "fusion/cuda/norm_kernels.hpp"
#include "fusion/cuda/slot_kernels.hpp"

namespace hfta::fusion::cuda {
namespace {

[[noreturn]] void absent() {
  throw Error(ErrorKind::kDevice, "this build has no CUDA kernels: configure where nvcc is found, with HFTA_CUDA=ON");
}

}  // namespace

bool built() { return false; }

std::size_t clip_workspace(const std::size_t*, int, int) { absent(); }
void clip_factors(const SlotParameters<float>&, const double*, double*, double*, void*) { absent(); }
void clip_factors(const SlotParameters<double>&, const double*, double*, double*, void*) { absent(); }
void step(OptimizerKind, const SlotParameters<float>&, const StepNumbers&, void*) { absent(); }
void step(OptimizerKind, const SlotParameters<double>&, const StepNumbers&, void*) { absent(); }
void dropout_masks(float*, const Draw&, const Rates&, void*) { absent(); }
void dropout_masks(double*, const Draw&, const Rates&, void*) { absent(); }
void uniforms(float*, const Draw&, void*) { absent(); }
void uniforms(double*, const Draw&, void*) { absent(); }
void normals(float*, const Draw&, void*) { absent(); }
void normals(double*, const Draw&, void*) { absent(); }
void batch_rows(void*, std::size_t, const void*, std::size_t, const std::int64_t*, const std::int64_t*, void*) {
  absent();
}
void store(void*, const void*, std::size_t, void*) { absent(); }
void cross_entropy(const Logits<float>&, float*, float*, float*, void*) { absent(); }
void cross_entropy(const Logits<double>&, double*, double*, double*, void*) { absent(); }
void cross_entropy_backward(const Logits<float>&, const float*, const LossWeights<float>&, float*, void*) { absent(); }
void cross_entropy_backward(const Logits<double>&, const double*, const LossWeights<double>&, double*, void*) {
  absent();
}
std::size_t loss_means_workspace(std::size_t, int) { absent(); }
void loss_means(const CountedLosses<float>&, float*, float*, double*, void*) { absent(); }
void loss_means(const CountedLosses<double>&, double*, double*, double*, void*) { absent(); }
void add_losses(const StepLosses<float>&, double*, void*) { absent(); }
void add_losses(const StepLosses<double>&, double*, void*) { absent(); }
void layer_norm(const NormRows<float>&, float*, float*, float*, void*) { absent(); }
void layer_norm(const NormRows<double>&, double*, double*, double*, void*) { absent(); }
std::size_t layer_norm_workspace(std::size_t, std::size_t, int) { absent(); }
void layer_norm_backward(const NormRows<float>&, const float*, const float*, const float*, const NormGradients<float>&,
                         float*, void*) {
  absent();
}
void layer_norm_backward(const NormRows<double>&, const double*, const double*, const double*,
                         const NormGradients<double>&, double*, void*) {
  absent();
}

std::size_t batch_norm_workspace(std::size_t, std::size_t, int) { absent(); }
void batch_norm_statistics(const BatchNormRows<float>&, double, const BatchNormStatistics<float>&,
                           const RunningStatistics<float>&, float*, void*) {
  absent();
}
void batch_norm_statistics(const BatchNormRows<double>&, double, const BatchNormStatistics<double>&,
                           const RunningStatistics<double>&, double*, void*) {
  absent();
}
void batch_norm(const BatchNormRows<float>&, const BatchNormStatistics<float>&, float*, void*) { absent(); }
void batch_norm(const BatchNormRows<double>&, const BatchNormStatistics<double>&, double*, void*) { absent(); }
void batch_norm_backward(const BatchNormRows<float>&, const BatchNormStatistics<float>&, bool, const float*,
                         const BatchNormGradients<float>&, float*, void*) {
  absent();
}
void batch_norm_backward(const BatchNormRows<double>&, const BatchNormStatistics<double>&, bool, const double*,
                         const BatchNormGradients<double>&, double*, void*) {
  absent();
}

void add_bias(const BiasShape&, const float*, bool, float*, void*) { absent(); }
void add_bias(const BiasShape&, const double*, bool, double*, void*) { absent(); }
std::size_t bias_workspace(const BiasShape&) { absent(); }
void add_bias_backward(const BiasShape&, const float*, const float*, float*, float*, float*, void*) { absent(); }
void add_bias_backward(const BiasShape&, const double*, const double*, double*, double*, double*, void*) { absent(); }

void columns(const ColumnShape&, const Pixels<const float>&, float*, void*) { absent(); }
void columns(const ColumnShape&, const Pixels<const double>&, double*, void*) { absent(); }
void images(const ColumnShape&, const float*, const Pixels<float>&, void*) { absent(); }
void images(const ColumnShape&, const double*, const Pixels<double>&, void*) { absent(); }

void attention(const AttentionShape&, const AttentionInput<float>&, const AttentionRows<float>&, float*, void*) {
  absent();
}
void attention(const AttentionShape&, const AttentionInput<double>&, const AttentionRows<double>&, double*, void*) {
  absent();
}
void attention_backward(const AttentionShape&, const AttentionInput<float>&, const AttentionResult<float>&,
                        const AttentionGradients<float>&, float*, void*) {
  absent();
}
void attention_backward(const AttentionShape&, const AttentionInput<double>&, const AttentionResult<double>&,
                        const AttentionGradients<double>&, double*, void*) {
  absent();
}

void embedding(const Lookup&, const float*, float*, void*) { absent(); }
void embedding(const Lookup&, const double*, double*, void*) { absent(); }
void embedding_backward(const Lookup&, const float*, float*, void*) { absent(); }
void embedding_backward(const Lookup&, const double*, double*, void*) { absent(); }

std::size_t codec_workspace(std::size_t, int) { absent(); }
void encode_slots(const SlotValues<const float>&, const float*, const SlotBytes<unsigned char>&, std::uint64_t*,
                  std::uint64_t*, void*) {
  absent();
}
void decode_slots(const SlotBytes<const unsigned char>&, const SlotValues<float>&, std::uint64_t*, void*) { absent(); }

}  // namespace hfta::fusion::cuda
