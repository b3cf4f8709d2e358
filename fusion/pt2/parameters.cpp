#include "fusion/pt2/parameters.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <tuple>
#include <utility>

namespace hfta::fusion::pt2 {
namespace {

using Kind = InputSpec::Kind;

class Builder {
 public:
  Builder(const Signature& signature, const StoredWeights& weights, const StoredWeights& constants, std::string place)
      : signature_(signature), weights_(weights), constants_(constants), place_(std::move(place)) {}

  Parameters build() {
    for (const InputSpec& input : signature_.inputs) {
      if (input.kind != Kind::kUser) add(input);
    }
    out_.dtype = model_dtype();
    out_.state = state();
    return std::move(out_);
  }

 private:
  [[nodiscard]] const StoredWeight& stored(const InputSpec& input) const {
    const auto in_state = weights_.find(input.target);
    if (input.kind != Kind::kConstant && in_state != weights_.end()) return in_state->second;
    const auto constant = constants_.find(input.target);
    if (constant == constants_.end()) fail(place_, fmt::format("found no stored tensor for '{}'", input.target));
    return constant->second;
  }

  void add(const InputSpec& input) {
    const StoredWeight& value = stored(input);
    const bool parameter = input.kind == Kind::kParameter;
    // Two names of one tensor are one weight, for as long as they are of one kind.
    const auto [same, added] = by_identity_.try_emplace(
        fmt::format("{} {}", static_cast<int>(input.kind), value.identity), out_.weights.size());
    if (added) {
      Weight weight;
      weight.name = input.target;
      weight.shape = value.tensor->shape;
      weight.dtype = value.tensor->dtype;
      weight.init.kind = Init::Kind::kStored;
      if (is_complex(weight.dtype)) hold_pairs(weight);
      weight.trained = parameter && value.requires_grad && is_floating(weight.dtype);
      weight.value = kNoValue;
      weight.stored = value.tensor;
      out_.weights.push_back(std::move(weight));
    } else {
      out_.weights[same->second].tied.push_back(input.target);
    }
    if (!out_.by_placeholder.try_emplace(input.placeholder, same->second).second) {
      fail(place_, fmt::format("found two inputs of the name '{}'", input.placeholder));
    }
    if (parameter) out_.names.push_back(input.target);
    if (input.kind == Kind::kBuffer) out_.buffers.try_emplace(input.target, same->second);
  }

  static void hold_pairs(Weight& weight) {
    weight.pairs = true;
    weight.dtype = part_of(weight.dtype);
    weight.shape.push_back(2);
  }

  [[nodiscard]] DType model_dtype() const {
    for (const Kind kind : {Kind::kParameter, Kind::kBuffer}) {
      for (const InputSpec& input : signature_.inputs) {
        const DType dtype = input.kind == kind ? part_of(stored(input).tensor->dtype) : DType::kBool;
        if (is_floating(dtype)) return dtype;
      }
    }
    return DType::kFloat32;
  }

  // Modules in their order; of each its parameters, then its buffers.
  [[nodiscard]] std::vector<StateEntry> state() const {
    std::map<std::string, std::size_t> order;
    for (const std::string& module : signature_.modules) order.try_emplace(module, order.size());
    std::vector<std::tuple<std::size_t, Kind, const InputSpec*>> entries;
    for (const InputSpec& input : signature_.inputs) {
      const bool kept = input.kind == Kind::kParameter || (input.kind == Kind::kBuffer && input.persistent);
      if (!kept) continue;
      const std::size_t dot = input.target.rfind('.');
      const auto module = order.find(dot == std::string::npos ? "" : input.target.substr(0, dot));
      entries.emplace_back(module == order.end() ? order.size() : module->second, input.kind, &input);
    }
    std::stable_sort(entries.begin(), entries.end(), [](const auto& a, const auto& b) {
      return std::tie(std::get<0>(a), std::get<1>(a)) < std::tie(std::get<0>(b), std::get<1>(b));
    });
    std::vector<StateEntry> out;
    for (const auto& [module, kind, input] : entries) out.push_back({input->target, stored(*input).tensor});
    return out;
  }

  const Signature& signature_;
  const StoredWeights& weights_;
  const StoredWeights& constants_;
  std::string place_;
  std::map<std::string, std::size_t> by_identity_;
  Parameters out_;
};

}  // namespace

Parameters parameters_from(const Signature& signature, const StoredWeights& weights, const StoredWeights& constants,
                           const std::string& place) {
  return Builder(signature, weights, constants, place).build();
}

}  // namespace hfta::fusion::pt2
