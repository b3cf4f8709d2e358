#include "fusion/graph/init_rules.hpp"

#include <cmath>

namespace hfta::fusion {
namespace {

using Kind = Init::Kind;

constexpr Init kZeros{Kind::kZeros, 0};
constexpr Init kOnes{Kind::kOnes, 0};

double size(const Shape& shape, std::size_t dim) { return dim < shape.size() ? static_cast<double>(shape[dim]) : 1; }

// Elements of one filter without its channels: what torch calls the receptive field.
double field(const Shape& shape) {
  double elements = 1;
  for (std::size_t i = 2; i < shape.size(); ++i) elements *= static_cast<double>(shape[i]);
  return elements;
}

double fan_in(const Shape& shape) { return size(shape, 1) * field(shape); }
double fan_out(const Shape& shape) { return size(shape, 0) * field(shape); }

Init uniform_by(double fan) { return fan > 0 ? Init{Kind::kUniform, 1 / std::sqrt(fan)} : kZeros; }
Init xavier_uniform(const Shape& shape) { return {Kind::kUniform, std::sqrt(6 / (fan_in(shape) + fan_out(shape)))}; }
Init xavier_normal(const Shape& shape) { return {Kind::kNormal, std::sqrt(2 / (fan_in(shape) + fan_out(shape)))}; }

std::optional<Init> identity(const std::string& name) {
  if (name == "weight" || name == "running_var") return kOnes;
  if (name == "bias" || name == "running_mean" || name == "num_batches_tracked") return kZeros;
  return std::nullopt;
}

std::optional<Init> attention(const std::string& name, const Shape& shape) {
  if (name.ends_with("proj_weight")) return xavier_uniform(shape);
  if (name == "bias_k" || name == "bias_v") return xavier_normal(shape);
  if (name == "in_proj_bias" || name == "out_proj.bias") return kZeros;
  if (name == "out_proj.weight") return uniform_by(fan_in(shape));
  return std::nullopt;
}

}  // namespace

std::optional<Init> init_of(const OpTraits& op, const std::string& name, const Shape& shape,
                            const std::function<Shape(const std::string&)>& shape_of) {
  if (op.init == InitRule::kAttention) return attention(name, shape);
  if (name.find('.') != std::string::npos) return std::nullopt;
  const bool dense = name == "weight" || name == "bias";
  switch (op.init) {
    case InitRule::kIdentity:
      return identity(name);
    case InitRule::kNormal:
      return Init{Kind::kNormal, 1};
    case InitRule::kGates: {
      const Shape layer = shape_of("weight_ih_l0");
      return uniform_by(size(layer.empty() ? shape_of("weight_ih") : layer, 0) / op.gates);
    }
    case InitRule::kFanIn:  // kaiming_uniform(a=sqrt(5)), and its rule for the bias, come to 1/sqrt(fan_in)
      return dense ? std::optional(uniform_by(fan_in(shape_of("weight")))) : std::nullopt;
    case InitRule::kSecondSize:
      return dense ? std::optional(uniform_by(size(shape_of("weight"), 1))) : std::nullopt;
    case InitRule::kUnknown:
    case InitRule::kAttention:
      break;
  }
  return std::nullopt;
}

}  // namespace hfta::fusion
