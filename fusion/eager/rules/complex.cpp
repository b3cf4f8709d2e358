// Complex numbers, and Fourier transforms along dimensions that are counted without the slots'.
#include <ATen/ATen.h>

#include <algorithm>
#include <numeric>

#include "fusion/eager/autocast.hpp"
#include "fusion/eager/batching_rules.hpp"

namespace hfta::fusion {
namespace {

using Dims = std::vector<std::int64_t>;

// A view, or a copy where strides do not allow one: layouts inside an array are not always those that the model was
// written for. A conjugate that is only noted down has no parts to look at.
std::vector<at::Tensor> as_complex(const OpCall& call) {
  const at::Tensor x = in_float32(call.tensor(0));
  bool viewed = x.dim() > 0 && x.stride(-1) == 1 && x.storage_offset() % 2 == 0 && !x.is_neg();
  for (std::int64_t d = 0; d + 1 < x.dim(); ++d) viewed = viewed && (x.stride(d) % 2 == 0 || x.size(d) == 1);
  return {at::view_as_complex(viewed ? x : x.resolve_neg().contiguous())};
}

// "All dimensions" are those of one slot.
Dims all_dims(const at::Tensor& x) {
  Dims dims(static_cast<std::size_t>(x.dim() - 1));
  std::iota(dims.begin(), dims.end(), 1);
  return dims;
}

Dims moved_up(Dims dims) {
  for (std::int64_t& dim : dims) dim += dim >= 0 ? 1 : 0;
  return dims;
}

// Schema: self, dim.
template <at::Tensor (*kShift)(const at::Tensor&, at::OptionalIntArrayRef)>
std::vector<at::Tensor> shifted(const OpCall& call) {
  const at::Tensor x = call.tensor(0);
  return {kShift(x, call.is_none(1) ? all_dims(x) : moved_up(call.ints(1)))};
}

// Schema: self, s, dim, norm. Sizes without dimensions are those of the last ones.
template <at::Tensor (*kTransform)(const at::Tensor&, at::OptionalIntArrayRef, at::OptionalIntArrayRef,
                                   std::optional<std::string_view>)>
std::vector<at::Tensor> transformed(const OpCall& call) {
  const at::Tensor x = in_float32(call.tensor(0));
  const Dims sizes = call.is_none(1) ? Dims() : call.ints(1);
  Dims dims = call.is_none(2) ? all_dims(x) : moved_up(call.ints(2));
  if (call.is_none(1)) return {kTransform(x, std::nullopt, dims, call.word(3))};
  if (call.is_none(2)) dims.erase(dims.begin(), dims.end() - std::min(std::ssize(sizes), std::ssize(dims)));
  return {kTransform(x, sizes, dims, call.word(3))};
}

}  // namespace

std::vector<BatchingRule> complex_rules() {
  std::vector<BatchingRule> rules = {
      {"aten::view_as_complex", "complex", {{"behind_slots", as_complex, nullptr}}, {}, as_complex}};
  for (const char* op : {"view_as_real", "real", "imag", "angle", "conj", "_conj", "conj_physical", "resolve_conj",
                         "resolve_neg", "complex", "polar"}) {
    rules.push_back({std::string("aten::") + op, "complex", {}});
  }
  for (const char* op : {"fft", "ifft", "rfft", "irfft", "hfft", "ihfft"}) {
    rules.push_back({std::string("aten::fft_") + op, "fft", {}, {2}});
    rules.push_back({std::string("aten::fft_") + op + "2", "fft", {}, {2}});
  }
  const auto along_dims = [&](const char* op, std::vector<at::Tensor> (*run)(const OpCall&)) {
    rules.push_back({op, "fft", {{"behind_slots", run, nullptr}}});
  };
  along_dims("aten::fft_fftn", transformed<at::fft_fftn>);
  along_dims("aten::fft_ifftn", transformed<at::fft_ifftn>);
  along_dims("aten::fft_rfftn", transformed<at::fft_rfftn>);
  along_dims("aten::fft_irfftn", transformed<at::fft_irfftn>);
  along_dims("aten::fft_hfftn", transformed<at::fft_hfftn>);
  along_dims("aten::fft_ihfftn", transformed<at::fft_ihfftn>);
  along_dims("aten::fft_fftshift", shifted<at::fft_fftshift>);
  along_dims("aten::fft_ifftshift", shifted<at::fft_ifftshift>);
  return rules;
}

}  // namespace hfta::fusion
