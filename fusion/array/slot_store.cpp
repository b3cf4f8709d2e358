#include "fusion/array/slot_store.hpp"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "base/error.hpp"
#include "base/random.hpp"
#include "fusion/array/optimizer.hpp"
#include "fusion/data/safetensors.hpp"

namespace hfta::fusion {
namespace {

std::vector<std::int64_t> with_slots(const Shape& shape, int slots) {
  std::vector<std::int64_t> out = {slots};
  out.insert(out.end(), shape.begin(), shape.end());
  return out;
}

const char* safetensors_name(at::ScalarType type) {
  switch (type) {
    case at::kFloat:
      return "F32";
    case at::kDouble:
      return "F64";
    case at::kLong:
      return "I64";
    default:
      throw Error(ErrorKind::kInternal, fmt::format("no safetensors dtype for {}", c10::toString(type)));
  }
}

// The same draws whatever the dtype: they are made in double and rounded.
at::Tensor draw(const Weight& weight, CountedRandom random) {
  const at::Tensor values = at::zeros(weight.shape, at::kDouble);
  double* out = values.data_ptr<double>();
  for (std::int64_t i = 0; i < values.numel(); ++i) {
    switch (weight.init.kind) {
      case Init::Kind::kZeros:
        break;
      case Init::Kind::kOnes:
        out[i] = 1;
        break;
      case Init::Kind::kUniform:
        out[i] = (2 * random.uniform() - 1) * weight.init.scale;
        break;
      case Init::Kind::kNormal:
        out[i] = random.normal() * weight.init.scale;
        break;
    }
  }
  return values;
}

}  // namespace

at::ScalarType scalar_type(DType dtype) {
  switch (dtype) {
    case DType::kFloat32:
      return at::kFloat;
    case DType::kFloat64:
      return at::kDouble;
    case DType::kInt64:
      return at::kLong;
  }
  throw Error(ErrorKind::kInternal, "unknown dtype");
}

SlotStore::SlotStore(const Graph& graph, OptimizerKind optimizer, int slots, const at::Device& device)
    : graph_(graph), optimizer_(optimizer), slots_(slots), device_(device) {
  for (const Weight& weight : graph.weights) {
    const auto options = at::TensorOptions().dtype(scalar_type(weight.dtype)).device(device);
    weights_.push_back(at::zeros(with_slots(weight.shape, slots), options));
    std::vector<at::Tensor> states;
    for (std::size_t s = 0; weight.trained && s < state_names(optimizer).size(); ++s) {
      states.push_back(at::zeros_like(weights_.back()));
    }
    states_.push_back(std::move(states));
  }
}

at::Tensor SlotStore::state(std::size_t i, std::size_t s) const {
  return s < states_[i].size() ? states_[i][s] : at::Tensor();
}

std::vector<std::pair<std::string, at::Tensor>> SlotStore::named() const {
  std::vector<std::pair<std::string, at::Tensor>> out;
  for (std::size_t i = 0; i < weights_.size(); ++i) out.emplace_back(graph_.weights[i].name, weights_[i]);
  const std::vector<const char*> names = state_names(optimizer_);
  for (std::size_t i = 0; i < weights_.size(); ++i) {
    for (std::size_t s = 0; s < states_[i].size(); ++s) {
      out.emplace_back(fmt::format("optimizer.{}.{}", names[s], graph_.weights[i].name), states_[i][s]);
    }
  }
  return out;
}

void SlotStore::initialise(int slot, std::uint64_t study_seed, std::uint64_t trial_seed) {
  for (std::size_t i = 0; i < weights_.size(); ++i) {
    weights_[i].select(0, slot).copy_(
        draw(graph_.weights[i], CountedRandom(study_seed, Stream::kInit, trial_seed, static_cast<std::uint64_t>(i))));
    for (const at::Tensor& state : states_[i]) state.select(0, slot).zero_();
  }
}

std::vector<std::byte> SlotStore::save(int slot, const std::map<std::string, std::string>& counters) const {
  std::vector<at::Tensor> rows;  // keep host copies alive until the bytes are written
  std::vector<TensorView> views;
  for (const auto& [name, tensor] : named()) {
    rows.push_back(tensor.select(0, slot).cpu().contiguous());
    const at::Tensor& row = rows.back();
    views.push_back({name,
                     safetensors_name(row.scalar_type()),
                     row.sizes().vec(),
                     {static_cast<const std::byte*>(row.const_data_ptr()), row.nbytes()}});
  }
  return write_safetensors(views, counters);
}

std::map<std::string, std::string> SlotStore::load(int slot, std::span<const std::byte> bytes) {
  const SafetensorsFile file = parse_safetensors(bytes);
  const auto all = named();
  if (file.tensors.size() != all.size()) {
    throw Error(ErrorKind::kStorage,
                fmt::format("slot state: found {} tensors, wanted {}", file.tensors.size(), all.size()));
  }
  std::vector<const TensorView*> sources;
  for (const auto& [name, tensor] : all) {
    const auto found = std::find_if(file.tensors.begin(), file.tensors.end(),
                                    [&n = name](const TensorView& view) { return view.name == n; });
    const std::vector<std::int64_t> shape = tensor.sizes().slice(1).vec();
    if (found == file.tensors.end() || found->shape != shape ||
        found->dtype != safetensors_name(tensor.scalar_type())) {
      throw Error(ErrorKind::kStorage,
                  fmt::format("slot state: {}: found {}, wanted {} {}", name,
                              found == file.tensors.end() ? "none" : found->dtype + " " + to_text(found->shape),
                              safetensors_name(tensor.scalar_type()), to_text(shape)));
    }
    sources.push_back(&*found);
  }
  for (std::size_t i = 0; i < all.size(); ++i) {
    const at::Tensor row = at::empty(sources[i]->shape, all[i].second.options().device(at::kCPU));
    if (!sources[i]->bytes.empty()) {
      std::memcpy(row.data_ptr(), sources[i]->bytes.data(), sources[i]->bytes.size());
    }
    all[i].second.select(0, slot).copy_(row);
  }
  return file.metadata;
}

void SlotStore::resize(int slots) {
  const int kept = std::min(slots, slots_);
  const auto resized = [&](const at::Tensor& old) {
    std::vector<std::int64_t> shape = old.sizes().vec();
    shape[0] = slots;
    at::Tensor fresh = at::zeros(shape, old.options());
    fresh.narrow(0, 0, kept).copy_(old.narrow(0, 0, kept));
    return fresh;
  };
  for (at::Tensor& weight : weights_) weight = resized(weight);
  for (auto& states : states_) {
    for (at::Tensor& state : states) state = resized(state);
  }
  slots_ = slots;
}

std::int64_t SlotStore::bytes_per_slot() const {
  std::int64_t total = 0;
  for (const auto& [name, tensor] : named()) total += static_cast<std::int64_t>(tensor.nbytes()) / slots_;
  return total;
}

}  // namespace hfta::fusion
