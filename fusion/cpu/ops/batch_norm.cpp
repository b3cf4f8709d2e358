// Batch norms as graphs have them: what an addition and a relu behind them become, and where their tensors lie.
#include <algorithm>

#include "fusion/cpu/aliases.hpp"
#include "fusion/cpu/ops/batch_norm_passes.hpp"

namespace hfta::fusion::cpu {
namespace {

// Rows that are summed by themselves: a function of the shape alone, so that any team comes to the same bits.
Stretches sets_of_rows(std::int64_t rows, std::int64_t channels) {
  constexpr std::int64_t kMost = 8, kUnit = 64;
  Stretches sets = stretches_of(rows, channels, kUnit);
  sets.length = std::max(sets.length, (rows + kMost * kUnit - 1) / (kMost * kUnit) * kUnit);
  return sets;
}

// C last in memory, the others in order.
Dims channels_last(std::int64_t dims) {
  Dims order = {0};
  for (std::int64_t d = 2; d < dims; ++d) order.push_back(d);
  order.push_back(1);
  return order;
}

// If all that happens to `output` is that a tensor is added which is there already, that node; the tensor is `other`.
std::optional<std::size_t> fused_addition(LoweringContext& site, const Dims& sizes, ValueId& other) {
  Builder& b = site.b;
  const auto reader = b.only_reader(site.output());
  if (!reader || site.node().no_gradient) return std::nullopt;
  const Node& node = b.graph().nodes[*reader];
  const bool adds = node.op == "aten::add.Tensor" || (node.op == "aten::add_.Tensor" && !node.no_gradient);
  if (!adds) return std::nullopt;
  const LoweringContext addition(b, *reader);
  if (node.args.size() < 3 || addition.hyper(2) || !addition.is_number(2) || addition.number(2) != 1)
    return std::nullopt;
  const auto* first = argument_if<ValueId>(node, 0);
  const auto* second = argument_if<ValueId>(node, 1);
  if (first == nullptr || second == nullptr) return std::nullopt;
  if (overwrites(node.op) && *first != site.output()) return std::nullopt;  // what it writes others may read
  other = *first == site.output() ? *second : *first;
  if (other == site.output() || !b.bound(other) || b.value(other).sizes != sizes || b.value(other).dtype != b.dtype()) {
    return std::nullopt;
  }
  return reader;
}

// Whether the node's input is made by a linear layer, or by a convolution without groups.
bool mixes_channels(const LoweringContext& site) {
  const auto* const value = site.argument<ValueId>(0);
  const auto maker = value != nullptr ? site.b.maker(*value) : std::nullopt;
  if (!maker) return false;
  const Node& node = site.b.graph().nodes[*maker];
  if (node.op == "aten::linear") return true;
  constexpr std::size_t kGroups = 6;
  if (!node.op.starts_with("aten::conv1d") && !node.op.starts_with("aten::conv2d")) return false;
  const auto* const groups = node.args.size() > kGroups ? argument_if<std::int64_t>(node, kGroups) : nullptr;
  return groups != nullptr && *groups == 1;
}

// Schema: input, weight, bias, running_mean, running_var, training, momentum, eps, cudnn_enabled.
void batch_norm(LoweringContext& site) {
  Builder& b = site.b;
  BatchNorm n;
  const Tensor x = site.floats(0);
  if (x.dim() < 2 || x.numel() == 0) site.fail("its input has no channels");
  const Dims order = channels_last(x.dim());
  n.x = b.in_order(x, order);
  const auto vector = [&](std::size_t i) { return b.contiguous_or_none(site.floats_or_none(i, {x.size(1)})); };
  n.weight = vector(1);
  n.bias = vector(2);
  n.running_mean = vector(3);
  n.running_var = vector(4);
  n.batch = site.flag(5);
  n.momentum = site.slot_number(6);
  n.eps = site.slot_number(7);
  n.mixes = mixes_channels(site);
  n.channels = x.size(1);
  n.rows = x.numel() / n.channels;
  if (n.batch && n.rows == 1) site.fail("one value for each channel has no variance");
  if (n.running_mean.defined() != n.running_var.defined()) site.fail("it has one of the running statistics alone");
  if (!n.batch && !n.running_mean.defined()) site.fail("it has no running statistics to normalise by");
  for (Tensor* t : {&n.mean, &n.deviation, &n.scale, &n.shift}) *t = b.fresh({n.channels});
  n.sets = sets_of_rows(n.rows, n.channels);
  for (Tensor* t : {&n.sums, &n.products}) *t = b.fresh({n.sets.count(), n.channels}, DType::kFloat64);
  const Tensor ordered = n.x.permuted(order);
  n.y = b.fresh(ordered.sizes).permuted(inverse(order));
  ValueId output = site.output(), other = kNoValue;
  if (const auto addition = fused_addition(site, x.sizes, other)) {
    n.residual = b.in_order(b.value(other), order);
    LoweringContext behind(b, *addition);
    b.fuse(*addition);
    output = behind.output();
    n.relu = fused_relu(behind);
  } else {
    n.relu = fused_relu(site);
  }
  typed(b.dtype(), [&]<typename T>() { emit_batch_norm<T>(b, n); });
  if (n.relu) n.signs = kept_signs(b, n.y);
  b.differentiable({n.x, n.weight, n.bias, n.residual}, {n.y},
                   [&b, n] { typed(b.dtype(), [&]<typename T>() { emit_batch_norm_backward<T>(b, n); }); });
  b.bind(output, n.y);
}

// Schema: input, other, alpha. Counters of batches, without gradients, which are written to where they are.
void count(LoweringContext& site) {
  Builder& b = site.b;
  const Tensor x = site.tensor(0);
  const auto& weights = b.graph().weights;
  const bool counter =
      x.dtype == DType::kInt64 && !b.wants_gradient(x) && site.is_number(1) &&
      std::any_of(weights.begin(), weights.end(), [&](const Weight& w) { return b.value(w.value).buffer == x.buffer; });
  if (!counter) site.fail("it runs without gradients");
  const std::int64_t step = site.integer(1) * site.integer(2), n = x.numel();
  if (!x.contiguous()) site.fail("the value that it changes has gaps");
  b.emit({x}, [=](const Run& run) {
    std::int64_t* const at = run.at<std::int64_t>(x);
    for (std::int64_t i = 0; i < n; ++i) at[i] += step;
  });
  site.bind(x);
}

}  // namespace

std::vector<NamedCompiler> batch_norm_ops() { return {{"aten::batch_norm", batch_norm}, {"aten::add_.Tensor", count}}; }

}  // namespace hfta::fusion::cpu
