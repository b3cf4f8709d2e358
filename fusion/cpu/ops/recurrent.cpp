// Recurrent layers. Schema of all kinds: input, hx, params, has_biases, num_layers, dropout, train, bidirectional,
// batch_first; an LSTM's hx is [h, c], those of others one tensor. The inputs' part of all gates is one product over
// all steps; what a step hands on is a product of its own.
#include "fusion/cpu/kernels/recurrent.hpp"

#include <cstring>
#include <memory>
#include <optional>

#include "fusion/cpu/kernels/rows.hpp"
#include "fusion/cpu/ops.hpp"
#include "fusion/cpu/ops/common.hpp"
#include "fusion/cpu/strided.hpp"

namespace hfta::fusion::cpu {
namespace {

// One direction of one layer. Its states lie one behind another in time: [T + 1, N, H], the first one in front (at the
// end, if it runs backwards).
struct Direction {
  Cell cell = Cell::kLstm;
  bool backwards = false;
  std::int64_t t = 0, n = 0, h = 0;
  Tensor gates = {};              // [T, N, G H]: the inputs' part, then the gates
  Tensor weight = {}, bias = {};  // those of the hidden part: [G H, H], [G H]
  Tensor turned = {};             // [H, G H]
  Tensor hidden = {};             // GRU: [T, N, 3 H]
  Tensor hs = {}, cs = {};        // cs: LSTM

  [[nodiscard]] std::int64_t width() const { return gates_of(cell) * h; }
  [[nodiscard]] std::int64_t before(std::int64_t step) const { return backwards ? t - step : step; }
  [[nodiscard]] std::int64_t after(std::int64_t step) const { return backwards ? t - step - 1 : step + 1; }
  [[nodiscard]] std::int64_t time(std::int64_t step) const { return backwards ? t - step - 1 : step; }
  /// The states of all steps, and the last.
  [[nodiscard]] Tensor outputs(const Tensor& states) const { return states.sliced(0, backwards ? 0 : 1, t); }
  [[nodiscard]] Tensor last(const Tensor& states) const { return states.selected(0, backwards ? 0 : t); }
  [[nodiscard]] Tensor first(const Tensor& states) const { return states.selected(0, backwards ? t : 0); }
  /// The states that the steps began with.
  [[nodiscard]] Tensor befores(const Tensor& states) const { return states.sliced(0, backwards ? 1 : 0, t); }
};

template <typename T>
T* row_of(const Run& run, const Tensor& all, std::int64_t at, std::int64_t elements) {
  return all.defined() ? run.at<T>(all) + at * elements : nullptr;
}

template <typename T>
CellStep<T> step_of(const Direction& d, const Run& run, std::int64_t step) {
  const std::int64_t state = d.n * d.h, sums = d.n * d.width();
  return {.n = d.n,
          .h = d.h,
          .gates = row_of<T>(run, d.gates, d.time(step), sums),
          .hidden = row_of<T>(run, d.hidden, d.time(step), sums),
          .bias = d.bias.defined() ? run.at<T>(d.bias) : nullptr,
          .h_before = row_of<T>(run, d.hs, d.before(step), state),
          .c_before = row_of<T>(run, d.cs, d.before(step), state),
          .h_after = row_of<T>(run, d.hs, d.after(step), state),
          .c_after = row_of<T>(run, d.cs, d.after(step), state)};
}

template <typename T>
void emit_steps(Builder& b, const Direction& d) {
  const bool apart = d.hidden.defined();  // a GRU's reset gate works on the hidden part alone
  const auto product = std::make_shared<const Gemm<T>>(
      Product{.m = d.n, .n = d.width(), .k = d.h, .lda = d.h, .ldb = d.width(), .ldc = d.width(), .add = !apart});
  const Tensor scratch = b.fresh({product->scratch(b.threads())});
  b.emit({d.weight, d.turned}, copy_kernel(d.weight.transposed(0, 1), d.turned, false));
  b.emit({d.gates, d.bias, d.turned, d.hidden, d.hs, d.cs, scratch}, [=](const Run& run) {
    for (std::int64_t s = 0; s < d.t; ++s) {
      const CellStep<T> step = step_of<T>(d, run, s);
      (*product)(step.h_before, run.at<T>(d.turned), apart ? step.hidden : step.gates, run.at<T>(scratch), run.team);
      advance(d.cell, step);
    }
  });
}

Kernel zero_kernel(const Tensor& t) {
  return [t](const Run& run) {
    std::memset(run.buffers[static_cast<std::size_t>(t.buffer)], 0,
                static_cast<std::size_t>(t.numel() * size_of(t.dtype)));
  };
}

// The gradient of states, which the steps add to; zeros where the loss does not depend on them by itself.
Tensor gradient_of_states(Builder& b, const Tensor& states) {
  if (const auto given = b.gradient(states)) return *given;
  Tensor zeros = b.fresh(states.sizes);
  b.emit({zeros}, zero_kernel(zeros));
  return zeros;
}

struct Gradients {
  Tensor gates, hidden;  // gradients of the sums; hidden: of the hidden weight's products
  Tensor hs, cs;
};

template <typename T>
void emit_steps_back(Builder& b, const Direction& d, const Gradients& g) {
  const auto product = std::make_shared<const Gemm<T>>(
      Product{.m = d.n, .n = d.h, .k = d.width(), .lda = d.width(), .ldb = d.h, .ldc = d.h, .add = true});
  const Tensor scratch = b.fresh({product->scratch(b.threads())});
  b.emit({d.gates, d.weight, d.hidden, d.hs, d.cs, g.gates, g.hidden, g.hs, g.cs, scratch}, [=](const Run& run) {
    const std::int64_t state = d.n * d.h, sums = d.n * d.width();
    const bool apart = d.hidden.defined();
    for (std::int64_t s = d.t; s-- > 0;) {
      const CellGradient<T> back{.step = step_of<T>(d, run, s),
                                 .dh = row_of<T>(run, g.hs, d.after(s), state),
                                 .dc = row_of<T>(run, g.cs, d.after(s), state),
                                 .dgates = row_of<T>(run, g.gates, d.time(s), sums),
                                 .dhidden = apart ? row_of<T>(run, g.hidden, d.time(s), sums) : nullptr,
                                 .dh_before = row_of<T>(run, g.hs, d.before(s), state),
                                 .dc_before = row_of<T>(run, g.cs, d.before(s), state)};
      retreat(d.cell, back);
      (*product)(apart ? back.dhidden : back.dgates, run.at<T>(d.weight), back.dh_before, run.at<T>(scratch), run.team);
    }
  });
}

template <typename T>
void emit_backward(Builder& b, const Direction& d, const Tensor& h0, const Tensor& c0) {
  if (!b.gradient(d.hs) && !(d.cs.defined() && b.gradient(d.cs))) return;
  // Frozen inputs and weights want no gradient of the gates, which the steps need all the same.
  const Tensor gates = b.wants_gradient(d.gates) ? b.contribute(d.gates).tensor : b.fresh(d.gates.sizes);
  Gradients g{gates, {}, gradient_of_states(b, d.hs), {}};
  g.hidden = d.hidden.defined() ? b.fresh(d.hidden.sizes) : g.gates;
  if (d.cs.defined()) g.cs = gradient_of_states(b, d.cs);
  emit_steps_back<T>(b, d, g);
  if (b.wants_gradient(d.weight)) {
    const Builder::Part dw = b.contribute(d.weight);
    emit_product<T>(b, g.hidden, d.befores(d.hs), dw.tensor,
                    {.m = d.width(),
                     .n = d.h,
                     .k = d.t * d.n,
                     .lda = d.width(),
                     .ldb = d.h,
                     .ldc = d.h,
                     .a_transposed = true,
                     .add = dw.add});
  }
  if (b.wants_gradient(d.bias)) {
    const Builder::Part db = b.contribute(d.bias);
    b.emit({g.hidden, db.tensor}, [=](const Run& run) {
      mask_and_sum(run.team, run.at<T>(g.hidden), nullptr, d.width(), d.t * d.n, d.width(), run.at<T>(db.tensor),
                   db.add);
    });
  }
  if (b.wants_gradient(h0)) b.contribute(h0, d.first(g.hs));
  if (b.wants_gradient(c0)) b.contribute(c0, d.first(g.cs));
}

// Runs one direction; `h0`, `c0` [N, H].
void run(Builder& b, Direction& d, const Tensor& h0, const Tensor& c0) {
  d.hs = b.fresh({d.t + 1, d.n, d.h});
  b.emit({h0, d.hs}, copy_kernel(h0, d.first(d.hs), false));
  if (c0.defined()) {
    d.cs = b.fresh({d.t + 1, d.n, d.h});
    b.emit({c0, d.cs}, copy_kernel(c0, d.first(d.cs), false));
  }
  if (d.cell == Cell::kGru) d.hidden = b.fresh({d.t, d.n, d.width()});
  d.turned = b.fresh({d.h, d.width()});
  typed(b.dtype(), [&]<typename T>() { emit_steps<T>(b, d); });
  std::vector<Tensor> states = {d.hs};
  if (d.cs.defined()) states.push_back(d.cs);
  b.differentiable({d.gates, d.weight, d.bias, h0, c0}, states,
                   [&b, d, h0, c0] { typed(b.dtype(), [&]<typename T>() { emit_backward<T>(b, d, h0, c0); }); });
}

// The call's arguments, checked.
class Layers {
 public:
  Layers(LoweringContext& site, Cell cell) : site_(site), cell_(cell), params_(site.tensors(2)) {
    biases_ = site.flag(3);
    count_ = site.integer(4);
    directions_ = site.flag(7) ? 2 : 1;
    batch_first_ = site.flag(8);
    const bool drops = site.flag(6) && count_ > 1 && (site.hyper(5) || site.number(5) > 0);
    if (drops) site.fail("dropout between its layers");
    if (count_ < 1 || params_.size() != static_cast<std::size_t>(count_ * directions_ * per_direction())) {
      site.fail("another number of weights than its layers have");
    }
    if (params_[1].dim() != 2) site.fail("a weight of it is no matrix");
    h_ = params_[1].size(1);
    const std::vector<Tensor> states = cell == Cell::kLstm ? site.tensors(1) : std::vector<Tensor>{site.tensor(1)};
    if (states.size() != (cell == Cell::kLstm ? 2U : 1U)) site.fail("another number of states than it has");
    h0_ = states[0];
    if (cell == Cell::kLstm) c0_ = states[1];
  }

  void compile() {
    Tensor x = site_.floats(0);
    if (x.dim() != 3) site_.fail("its input has no samples");
    if (batch_first_) x = x.transposed(0, 1);
    check_state(h0_, x.size(1));
    if (c0_.defined()) check_state(c0_, x.size(1));
    std::vector<Tensor> last_h, last_c;
    for (std::int64_t layer = 0; layer < count_; ++layer) {
      std::vector<Tensor> sides;
      for (std::int64_t side = 0; side < directions_; ++side) {
        const Direction d = direction(x, layer * directions_ + side, side == 1);
        sides.push_back(d.outputs(d.hs));
        last_h.push_back(d.last(d.hs));
        if (d.cs.defined()) last_c.push_back(d.last(d.cs));
      }
      x = sides.size() == 1 ? sides[0] : joined(site_, sides, 2);
    }
    site_.bind(batch_first_ ? x.transposed(0, 1) : x);
    bind_states(1, last_h);
    if (cell_ == Cell::kLstm) bind_states(2, last_c);
  }

 private:
  [[nodiscard]] std::int64_t per_direction() const { return biases_ ? 4 : 2; }

  [[nodiscard]] Tensor param(std::int64_t index, std::int64_t which, const Dims& sizes) const {
    Tensor t = params_[static_cast<std::size_t>(index * per_direction() + which)];
    if (t.sizes != sizes || t.dtype != site_.b.dtype()) site_.fail("a weight of it has other sizes or another dtype");
    return site_.b.contiguous(t);
  }

  void check_state(const Tensor& state, std::int64_t samples) const {
    if (state.sizes != Dims{count_ * directions_, samples, h_} || state.dtype != site_.b.dtype()) {
      site_.fail("a first state has other sizes or another dtype");
    }
  }

  // Compiles one.
  [[nodiscard]] Direction direction(const Tensor& x, std::int64_t index, bool backwards) const {
    const std::int64_t width = gates_of(cell_) * h_;
    Direction d{.cell = cell_, .backwards = backwards, .t = x.size(0), .n = x.size(1), .h = h_};
    const Tensor input = param(index, 0, {width, x.size(2)});
    d.weight = param(index, 1, {width, h_});
    if (biases_) d.bias = param(index, 3, {width});
    d.gates = linear_map(site_.b, x, input, biases_ ? param(index, 2, {width}) : Tensor{});
    run(site_.b, d, h0_.selected(0, index), c0_.defined() ? c0_.selected(0, index) : Tensor{});
    return d;
  }

  void bind_states(std::size_t output, std::vector<Tensor>& states) const {
    if (site_.node().outputs.size() <= output || site_.output(output) == kNoValue) return;
    for (Tensor& state : states) state.insert(0);
    site_.bind(joined(site_, states, 0), output);
  }

  LoweringContext& site_;
  Cell cell_;
  std::vector<Tensor> params_;
  bool biases_ = false, batch_first_ = false;
  std::int64_t count_ = 0, directions_ = 1, h_ = 0;
  Tensor h0_, c0_;
};

template <Cell kCell>
void recurrent(LoweringContext& site) {
  Layers(site, kCell).compile();
}

// One step of one layer. Schema: input, hx, w_ih, w_hh, b_ih, b_hh.
template <Cell kCell>
void cell(LoweringContext& site) {
  Builder& b = site.b;
  const bool lstm = kCell == Cell::kLstm;
  const std::vector<Tensor> states = lstm ? site.tensors(1) : std::vector<Tensor>{site.tensor(1)};
  Tensor x = site.floats(0);
  const Tensor weight = site.floats(3);
  if (x.dim() != 2 || weight.dim() != 2) site.fail("its input has no samples, or a weight of it is no matrix");
  Direction d{.cell = kCell, .t = 1, .n = x.size(0), .h = weight.size(1)};
  const Tensor input = site.floats(2), input_bias = site.floats_or_none(4, {d.width()});
  const bool fits = weight.size(0) == d.width() && input.sizes == Dims{d.width(), x.size(1)};
  if (!fits || states.size() != (lstm ? 2U : 1U)) site.fail("its input, states and weights do not fit");
  for (const Tensor& state : states) {
    if (state.sizes != Dims{d.n, d.h} || state.dtype != b.dtype())
      site.fail("a state has other sizes or another dtype");
  }
  x.insert(0);
  d.weight = b.contiguous(weight);
  d.bias = b.contiguous_or_none(site.floats_or_none(5, {d.width()}));
  d.gates = linear_map(b, x, b.contiguous(input), input_bias);
  run(b, d, states[0], lstm ? states[1] : Tensor{});
  site.bind(d.last(d.hs));
  if (lstm) site.bind(d.last(d.cs), 1);
}

}  // namespace

std::vector<NamedCompiler> recurrent_ops() {
  return {{"aten::lstm.input", recurrent<Cell::kLstm>},     {"aten::gru.input", recurrent<Cell::kGru>},
          {"aten::rnn_tanh.input", recurrent<Cell::kTanh>}, {"aten::rnn_relu.input", recurrent<Cell::kRelu>},
          {"aten::lstm_cell", cell<Cell::kLstm>},           {"aten::gru_cell", cell<Cell::kGru>},
          {"aten::rnn_tanh_cell", cell<Cell::kTanh>},       {"aten::rnn_relu_cell", cell<Cell::kRelu>}};
}

}  // namespace hfta::fusion::cpu
