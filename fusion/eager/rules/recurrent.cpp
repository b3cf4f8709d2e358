// Recurrent layers, with counted dropout between them. Schema of all kinds: input, hx, params, has_biases, num_layers,
// dropout, train, bidirectional, batch_first; an LSTM's hx is [h, c], those of others one tensor.
#include <ATen/ATen.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <fmt/format.h>

#include <algorithm>

#include "base/error.hpp"
#include "fusion/eager/autocast.hpp"
#include "fusion/eager/batching_rules.hpp"
#include "fusion/eager/counted.hpp"

namespace hfta::fusion {
namespace {

enum class Kind { kLstm, kGru, kTanh, kRelu };

// One direction of one layer: weights [G*H, I], [G*H, H], biases [G*H]; with a leading [c] where there are slots.
struct Direction {
  at::Tensor input_weight, hidden_weight, input_bias, hidden_bias;
};

struct State {
  at::Tensor h, c;  // [N, H]; c: LSTM's alone
};

// x [N, F] times the transpose of w [G, F], or both with a leading [c].
at::Tensor product(const at::Tensor& x, const at::Tensor& w, const at::Tensor& bias) {
  const at::Tensor y = at::matmul(x, w.transpose(-2, -1));
  return bias.defined() ? y + as_multiplied(bias).unsqueeze(-2) : y;
}

// An output in the type that ATen's layer gives it under autocast: a GRU on a CPU keeps its first state's.
at::Tensor as_given(Kind kind, const at::Tensor& t) { return kind == Kind::kGru && t.is_cpu() ? t : as_multiplied(t); }

// One step, by the equations of torch.nn.LSTM, GRU and RNN. `projected`: the input's part of the gates.
State advance(Kind kind, const at::Tensor& projected, const State& state, const Direction& d) {
  const at::Tensor from_hidden = product(state.h, d.hidden_weight, d.hidden_bias);
  if (kind == Kind::kTanh) return {at::tanh(projected + from_hidden), {}};
  if (kind == Kind::kRelu) return {at::relu(projected + from_hidden), {}};
  if (kind == Kind::kGru) {
    const auto in = projected.chunk(3, -1), hidden = from_hidden.chunk(3, -1);
    const at::Tensor reset = at::sigmoid(in[0] + hidden[0]), update = at::sigmoid(in[1] + hidden[1]);
    const at::Tensor fresh = at::tanh(in[2] + reset * hidden[2]);
    return {(state.h - fresh) * update + fresh, {}};
  }
  const auto gates = (projected + from_hidden).chunk(4, -1);
  const at::Tensor c = at::sigmoid(gates[1]) * state.c + at::sigmoid(gates[0]) * at::tanh(gates[2]);
  return {at::sigmoid(gates[3]) * at::tanh(c), c};
}

// x [T, N, F] or [c, T, N, F]; `time` is T's dimension. Returns outputs alike and the last state.
std::pair<at::Tensor, State> run_direction(Kind kind, const at::Tensor& x, std::int64_t time, State state,
                                           const Direction& d, bool backwards) {
  const std::int64_t steps = x.size(time);
  // The inputs' part of all gates at once: one large product instead of T small ones.
  const at::Tensor rows = x.flatten(time, time + 1);
  const at::Tensor projected = product(rows, d.input_weight, d.input_bias).unflatten(time, {steps, x.size(time + 1)});
  std::vector<at::Tensor> outputs(static_cast<std::size_t>(steps));
  for (std::int64_t i = 0; i < steps; ++i) {
    const std::int64_t t = backwards ? steps - 1 - i : i;
    state = advance(kind, projected.select(time, t), state, d);
    outputs[static_cast<std::size_t>(t)] = state.h;
  }
  return {at::stack(outputs, time), state};
}

struct Layers {
  Kind kind;
  at::Tensor x;
  std::vector<at::Tensor> initial, weights;
  bool biases, bidirectional, batch_first;
  std::int64_t count;
  SlotNumbers rates;
  std::int64_t lead;  // dimensions in front of a slot's own

  Layers(const OpCall& call, Kind k)
      : kind(k),
        x(call.tensor(0)),
        initial(k == Kind::kLstm ? call.tensors(1) : std::vector<at::Tensor>{call.tensor(1)}),
        weights(call.tensors(2)),
        biases(call.flag(3)),
        bidirectional(call.flag(7)),
        batch_first(call.flag(8)),
        count(call.integer(4)),
        rates(call.flag(6) ? call.per_slot(5) : std::vector<double>(call.context().members(), 0.0)),
        lead(call.slots() > 0 ? 1 : 0) {}

  [[nodiscard]] bool drops() const {
    return count > 1 && !rates.all([](double p) { return p <= 0; });
  }
  [[nodiscard]] std::int64_t directions() const { return bidirectional ? 2 : 1; }
  [[nodiscard]] std::size_t per_direction() const { return biases ? 4 : 2; }
  [[nodiscard]] Direction direction(std::int64_t index) const {
    const auto* w = &weights[static_cast<std::size_t>(index) * per_direction()];
    return {w[0], w[1], biases ? w[2] : at::Tensor(), biases ? w[3] : at::Tensor()};
  }
  [[nodiscard]] State state(std::int64_t index) const {
    return {initial[0].select(lead, index), kind == Kind::kLstm ? initial[1].select(lead, index) : at::Tensor()};
  }
};

void want(bool holds, const char* what) {
  if (!holds) throw Error(ErrorKind::kConfig, fmt::format("lstm, gru or rnn: {}", what));
}

// ATen hands states and weights to oneDNN as they are, which reads and writes as many elements as the input and the
// first weight call for.
void check_sizes(Kind kind, const at::Tensor& x, const std::vector<at::Tensor>& initial,
                 const std::vector<at::Tensor>& weights, const Layers& l) {
  want(x.dim() == 2 || x.dim() == 3, "found an input that is neither [T, F] nor [T, N, F]");
  const std::int64_t gates = kind == Kind::kLstm ? 4 : kind == Kind::kGru ? 3 : 1;
  const std::int64_t directions = l.directions(), all = l.count * directions;
  want(l.count > 0 && l.count <= static_cast<std::int64_t>(weights.size()),
       "found another number of layers than weights");
  const auto plain = static_cast<std::size_t>(all) * l.per_direction();
  const bool projected = kind == Kind::kLstm && weights.size() == plain + static_cast<std::size_t>(all);
  want(weights.size() == plain || projected, "found another number of weights than layers have");
  want(weights[1].dim() == 2 && weights[0].dim() == 2, "found a weight that is no matrix");
  const std::int64_t hidden = weights[0].size(0) / gates;
  const std::int64_t given = projected ? weights[l.per_direction()].size(0) : hidden;  // what a step hands on
  for (std::int64_t i = 0; i < all; ++i) {
    const auto* w = &weights[static_cast<std::size_t>(i) * (l.per_direction() + (projected ? 1 : 0))];
    const std::int64_t in = i < directions ? x.size(-1) : given * directions;
    want(w[0].sizes() == at::IntArrayRef({gates * hidden, in}),
         "found an input weight of other sizes than the layer's");
    want(w[1].sizes() == at::IntArrayRef({gates * hidden, given}),
         "found a hidden weight of other sizes than the layer's");
    for (std::size_t b = 2; l.biases && b < 4; ++b) {
      want(w[b].sizes() == at::IntArrayRef({gates * hidden}), "found a bias of other sizes than the layer's");
    }
    if (projected) {
      want(w[l.per_direction()].sizes() == at::IntArrayRef({given, hidden}), "found a projection of other sizes");
    }
  }
  const std::int64_t samples = x.dim() == 2 ? 0 : x.size(l.batch_first ? 0 : 1);
  want(initial.size() == (kind == Kind::kLstm ? 2U : 1U), "found another number of states than the layer has");
  for (std::size_t s = 0; s < initial.size(); ++s) {
    const std::int64_t width = s == 0 ? given : hidden;
    const bool fits = x.dim() == 2 ? initial[s].sizes() == at::IntArrayRef({all, width})
                                   : initial[s].sizes() == at::IntArrayRef({all, samples, width});
    want(fits, "found a first state of other sizes than [layers, N, hidden]");
  }
  // Autocast brings bfloat16 beside the model's own type, and ATen takes both.
  const auto alike = [&](const at::Tensor& t) {
    return t.scalar_type() == x.scalar_type() || t.scalar_type() == at::kBFloat16 || x.scalar_type() == at::kBFloat16;
  };
  for (const at::Tensor& state : initial) want(alike(state), "found a state of another dtype than the input");
  for (const at::Tensor& w : weights) want(alike(w), "found a weight of another dtype than the input");
}

std::vector<at::Tensor> run_layers(const OpCall& call, const Layers& layers) {
  if (layers.weights.size() != static_cast<std::size_t>(layers.count * layers.directions()) * layers.per_direction()) {
    throw Error(ErrorKind::kConfig,
                "lstm: found a projection (proj_size) with dropout between layers, wanted one or the other");
  }
  const std::int64_t time = layers.lead;
  const bool batched = layers.x.dim() - layers.lead == 3;
  at::Tensor x = layers.x;
  if (!batched) x = x.unsqueeze(time + 1);
  if (batched && layers.batch_first) x = x.transpose(time, time + 1);
  std::vector<at::Tensor> last_h, last_c;
  at::Tensor masks;  // masks of all layers at once, so that each has its own part of the node's numbers
  for (std::int64_t layer = 0; layer < layers.count; ++layer) {
    std::vector<at::Tensor> sides;
    for (std::int64_t d = 0; d < layers.directions(); ++d) {
      const std::int64_t index = layer * layers.directions() + d;
      State initial = layers.state(index);
      if (!batched) {
        initial.h = initial.h.unsqueeze(time);
        if (initial.c.defined()) initial.c = initial.c.unsqueeze(time);
      }
      auto [y, state] = run_direction(layers.kind, x, time, initial, layers.direction(index), d == 1);
      sides.push_back(y);
      last_h.push_back(state.h);
      if (state.c.defined()) last_c.push_back(state.c);
    }
    x = sides.size() == 1 ? sides[0] : at::cat(sides, -1);
    if (layer + 1 == layers.count || !layers.drops()) continue;
    if (!masks.defined()) {
      std::vector<std::int64_t> sizes = slot_sizes(x, call);
      sizes.insert(sizes.begin(), layers.count - 1);
      masks = counted_masks(call, sizes, layers.rates, x.options());
    }
    x = x * masks.select(layers.lead, layer);
  }
  x = as_given(layers.kind, x);
  if (batched && layers.batch_first) x = x.transpose(time, time + 1);
  const auto finish = [&](const std::vector<at::Tensor>& states) {
    const at::Tensor all = as_given(layers.kind, at::stack(states, layers.lead));
    return batched ? all : all.squeeze(layers.lead + 1);
  };
  std::vector<at::Tensor> out = {batched ? x : x.squeeze(time + 1), finish(last_h)};
  if (layers.kind == Kind::kLstm) out.push_back(finish(last_c));
  return out;
}

// Whether this CPU can run at::lstm in bfloat16, forward and backward. Under autocast ATen hands a float32 layer to
// oneDNN without asking; oneDNN has none without AVX-512 (or with ONEDNN_MAX_CPU_ISA below it), and throws. So it is
// tried once.
bool cpu_has_bfloat16_lstm() {
  static const bool has = [] {
    const auto ones = [](std::vector<std::int64_t> sizes) { return at::ones(sizes, at::kFloat); };
    const at::AutoGradMode record(true);
    const Autocast lower(Precision::kBfloat16, at::kCPU);
    try {
      const at::Tensor x = ones({1, 1, 1}).requires_grad_(true), state = ones({1, 1, 1});
      const std::vector<at::Tensor> weights = {ones({4, 1}), ones({4, 1}), ones({4}), ones({4})};
      const at::Tensor y =
          std::get<0>(at::lstm(x, std::vector{state, state}, weights, true, 1, 0.0, true, false, false));
      y.sum().backward();
      return true;
    } catch (const std::exception&) {
      return false;
    }
  }();
  return has;
}

std::vector<at::Tensor> lstm(const at::Tensor& x, const std::vector<at::Tensor>& hx,
                             const std::vector<at::Tensor>& weights, const Layers& l) {
  auto [y, h, c] = at::lstm(x, hx, weights, l.biases, l.count, 0.0, true, l.bidirectional, l.batch_first);
  return {y, h, c};
}

// Computed in float32, and given in bfloat16 as at::lstm would.
std::vector<at::Tensor> lstm_in_float32(const at::Tensor& x, const std::vector<at::Tensor>& hx,
                                        const std::vector<at::Tensor>& weights, const Layers& l) {
  const auto widened = [](std::vector<at::Tensor> all) {
    for (at::Tensor& t : all) t = t.to(at::kFloat);
    return all;
  };
  std::vector<at::Tensor> out;
  {
    const c10::impl::ExcludeDispatchKeyGuard no_autocast(c10::DispatchKey::AutocastCPU);
    out = lstm(x.to(at::kFloat), widened(hx), widened(weights), l);
  }
  for (at::Tensor& t : out) t = t.to(at::kBFloat16);
  return out;
}

std::vector<at::Tensor> aten(Kind kind, const at::Tensor& x, const std::vector<at::Tensor>& hx,
                             const std::vector<at::Tensor>& weights, const Layers& l) {
  check_sizes(kind, x, hx, weights, l);
  if (kind == Kind::kLstm) {
    const bool lacking = x.is_cpu() && as_multiplied(x).scalar_type() == at::kBFloat16 && !cpu_has_bfloat16_lstm();
    return lacking ? lstm_in_float32(x, hx, weights, l) : lstm(x, hx, weights, l);
  }
  const auto run = [&](auto layer) -> std::vector<at::Tensor> {
    auto [y, h] = layer(x, hx[0], weights, l.biases, l.count, 0.0, true, l.bidirectional, l.batch_first);
    return {y, h};
  };
  if (kind == Kind::kGru) return run([](const auto&... args) { return at::gru(args...); });
  if (kind == Kind::kTanh) return run([](const auto&... args) { return at::rnn_tanh(args...); });
  return run([](const auto&... args) { return at::rnn_relu(args...); });
}

template <Kind kKind>
std::vector<at::Tensor> alone(const OpCall& call) {
  const Layers layers(call, kKind);
  if (layers.drops()) return run_layers(call, layers);  // ATen's own dropout cannot be counted
  return aten(kKind, layers.x, layers.initial, layers.weights, layers);
}

template <Kind kKind>
std::vector<at::Tensor> together(const OpCall& call) {
  return run_layers(call, Layers(call, kKind));
}

template <Kind kKind>
std::vector<at::Tensor> per_slot(const OpCall& call) {
  const Layers layers(call, kKind);
  if (layers.drops()) return run_layers(call, layers);
  const auto rows = [](const std::vector<at::Tensor>& all, std::int64_t b) {
    std::vector<at::Tensor> out;
    for (const at::Tensor& t : all) out.push_back(t.select(0, b));
    return out;
  };
  std::vector<std::vector<at::Tensor>> by_output;
  for (std::int64_t b = 0; b < call.slots(); ++b) {
    const auto outputs = aten(kKind, layers.x.select(0, b), rows(layers.initial, b), rows(layers.weights, b), layers);
    by_output.resize(outputs.size());
    for (std::size_t o = 0; o < outputs.size(); ++o) by_output[o].push_back(outputs[o]);
  }
  std::vector<at::Tensor> out;
  for (const auto& slots : by_output) out.push_back(at::stack(slots));
  return out;
}

// A projected LSTM has a fifth weight per direction, which these equations lack.
bool unprojected(const Node& node) {
  const auto* weights = argument_if<std::vector<ValueId>>(node, 2);
  const auto* layers = argument_if<std::int64_t>(node, 4);
  if (weights == nullptr || layers == nullptr) return false;
  const std::int64_t directions = argument_as<bool>(node, 7) ? 2 : 1;
  const std::int64_t per_direction = argument_as<bool>(node, 3) ? 4 : 2;
  return static_cast<std::int64_t>(weights->size()) == *layers * directions * per_direction;
}

template <Kind kKind>
BatchingRule recurrent(const char* op) {
  return {op,  "recurrent",  {{"batched_steps", together<kKind>, unprojected}, {"per_slot", per_slot<kKind>, nullptr}},
          {},  alone<kKind>, nullptr,
          true};
}

}  // namespace

std::vector<BatchingRule> recurrent_rules() {
  return {recurrent<Kind::kLstm>("aten::lstm.input"), recurrent<Kind::kGru>("aten::gru.input"),
          recurrent<Kind::kTanh>("aten::rnn_tanh.input"), recurrent<Kind::kRelu>("aten::rnn_relu.input")};
}

}  // namespace hfta::fusion
