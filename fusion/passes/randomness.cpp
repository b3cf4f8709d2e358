#include "fusion/passes/randomness.hpp"

#include "fusion/passes/schema.hpp"

namespace hfta::fusion {
namespace {

bool is_zero(const Arg& arg) {
  const auto* number = std::get_if<double>(&arg);
  const auto* whole = std::get_if<std::int64_t>(&arg);
  return (number != nullptr && *number == 0) || (whole != nullptr && *whole == 0);
}

bool is_one_layer(const Arg& arg) {
  const auto* layers = std::get_if<std::int64_t>(&arg);
  return layers != nullptr && *layers <= 1;
}

}  // namespace

bool draws(const Node& node) {
  if (is_number_op(node.op)) return false;
  const OpTraits& op = traits_of(node);
  if (op.draws == Draws::kNothing) return false;
  const Arg* training = find_argument(node, op.training);
  if (training != nullptr && *training == Arg(false)) return false;
  if (op.draws != Draws::kNoise) return true;
  const Arg *rate = find_argument(node, op.rate), *layers = find_argument(node, op.layers);
  return (rate == nullptr || !is_zero(*rate)) && (layers == nullptr || !is_one_layer(*layers));
}

bool draws_masks(const Node& node) {
  if (!draws(node) || !draws_noise(node)) return false;
  const OpTraits& op = traits_of(node);
  return !op.rate.empty() && op.layers.empty();
}

bool draws_noise(const Node& node) { return !is_number_op(node.op) && traits_of(node).draws == Draws::kNoise; }

}  // namespace hfta::fusion
