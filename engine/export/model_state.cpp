#include "engine/export/model_state.hpp"

#include <fmt/format.h>

#include <cstring>
#include <map>
#include <string>
#include <utility>

#include "base/error.hpp"

namespace hfta::engine {
namespace {

using fusion::TensorView;

template <typename To, typename From>
fusion::StoredTensor cast(const fusion::StoredTensor& tensor, fusion::DType dtype) {
  fusion::StoredTensor out{tensor.shape, dtype, {}};
  out.bytes.resize(tensor.bytes.size() / sizeof(From) * sizeof(To));
  for (std::size_t i = 0; i < tensor.bytes.size() / sizeof(From); ++i) {
    From from;
    std::memcpy(&from, tensor.bytes.data() + i * sizeof(From), sizeof(From));
    const To to = static_cast<To>(from);
    std::memcpy(out.bytes.data() + i * sizeof(To), &to, sizeof(To));
  }
  return out;
}

// The tensor with its float32 or float64 numbers cast to `dtype`. Complex numbers become complex64:
// safetensors has no others.
std::shared_ptr<const fusion::StoredTensor> in_dtype(const std::shared_ptr<const fusion::StoredTensor>& tensor,
                                                     fusion::DType dtype) {
  using fusion::DType;
  if (tensor->dtype == DType::kComplex128) {
    return std::make_shared<const fusion::StoredTensor>(cast<float, double>(*tensor, DType::kComplex64));
  }
  if (tensor->dtype == DType::kFloat32 && dtype == DType::kFloat64) {
    return std::make_shared<const fusion::StoredTensor>(cast<double, float>(*tensor, dtype));
  }
  if (tensor->dtype == DType::kFloat64 && dtype == DType::kFloat32) {
    return std::make_shared<const fusion::StoredTensor>(cast<float, double>(*tensor, dtype));
  }
  return tensor;
}

// The model's complex tensor, made from the pairs of numbers that the slot has.
std::shared_ptr<const fusion::StoredTensor> joined_pairs(const TensorView& pairs) {
  fusion::StoredTensor tensor{pairs.shape, fusion::DType::kComplex64, {pairs.bytes.begin(), pairs.bytes.end()}};
  if (pairs.shape.empty() || pairs.shape.back() != 2) {
    throw Error(ErrorKind::kStorage, fmt::format("slot state: {}: found no pairs of numbers", pairs.name));
  }
  tensor.shape.pop_back();
  if (pairs.dtype != fusion::safetensors_name(fusion::DType::kFloat64)) {
    return std::make_shared<const fusion::StoredTensor>(std::move(tensor));
  }
  return std::make_shared<const fusion::StoredTensor>(cast<float, double>(tensor, fusion::DType::kComplex64));
}

}  // namespace

ModelState state_of(const fusion::ExportedModel& model, const fusion::ImportOptions& options, const Tensors& slot) {
  // Names are asked of the graph, not numbers: neither what is bound, in this graph or in evaluation's, nor first
  // values.
  fusion::ImportOptions named;
  named.dtype = options.dtype;
  named.output = options.output;
  named.own_loss = options.own_loss;
  const fusion::Graph graph = model.graph(named);
  std::map<std::string, const TensorView*> trained;
  for (const TensorView& tensor : slot) trained[tensor.name] = &tensor;
  for (const fusion::Weight& weight : graph.weights) {
    const auto own = trained.find(weight.name);
    if (own == trained.end()) continue;
    for (const std::string& name : weight.tied) trained[name] = own->second;
  }
  ModelState state;
  for (const fusion::StateEntry& entry : model.state()) {
    const auto own = trained.find(entry.name);
    if (own != trained.end() && !fusion::is_complex(entry.value->dtype)) {
      state.tensors.push_back({entry.name, own->second->dtype, own->second->shape, own->second->bytes});
    } else {
      const fusion::StoredTensor& shared = *state.held.emplace_back(
          own != trained.end() ? joined_pairs(*own->second) : in_dtype(entry.value, options.dtype));
      state.tensors.push_back({entry.name, safetensors_name(shared.dtype), shared.shape, shared.bytes});
    }
  }
  return state;
}

}  // namespace hfta::engine
