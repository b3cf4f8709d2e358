#include "op_cases.hpp"

#include <ATen/core/dispatch/Dispatcher.h>
#include <fmt/format.h>

#include <set>

#include "fusion/eager/batching_rule.hpp"
#include "fusion/passes/schema.hpp"
#include "tests/fusion/array/catch_after_torch.hpp"

namespace hfta::fusion::testing {
namespace {

using Ints = std::vector<std::int64_t>;

CaseArg slot(Shape rest) {
  rest.insert(rest.begin(), kBatch);
  return {{}, {{rest, From::kSlot}}};
}
CaseArg weight(Shape shape) { return {{}, {{std::move(shape), From::kWeight}}}; }
CaseArg frozen(Shape shape) { return {{}, {{std::move(shape), From::kFrozen}}}; }
CaseArg buffer(Shape shape) { return {{}, {{std::move(shape), From::kBuffer}}}; }
CaseArg index(Shape rest) {
  rest.insert(rest.begin(), kBatch);
  return {{}, {{rest, From::kIndex}}};
}
CaseArg mask(Shape rest) {
  rest.insert(rest.begin(), kBatch);
  return {{}, {{rest, From::kMask}}};
}
CaseArg list(const std::vector<CaseArg>& items) {
  CaseArg out{{}, {}, true};
  for (const CaseArg& item : items) out.tensors.push_back(item.tensors.front());
  return out;
}
CaseArg complex_slot(Shape rest) {
  rest.insert(rest.begin(), kBatch);
  return {{}, {{rest, From::kComplex}}};
}
CaseArg complex_weight(Shape shape) { return {{}, {{std::move(shape), From::kComplexWeight}}}; }
CaseArg none() { return {}; }
CaseArg literal(Arg value) { return {std::move(value)}; }
CaseArg number(double value) { return {value}; }
CaseArg whole(std::int64_t value) { return {value}; }
CaseArg flag(bool value) { return {value}; }
CaseArg ints(Ints values) { return {std::move(values)}; }

void add_convolutions(std::vector<OpCase>& cases) {
  const auto conv = [&](const char* op, Shape x, Shape w, Ints stride, Ints padding, Ints dilation, std::int64_t groups,
                        const char* note) {
    const std::int64_t out = w[0];
    cases.push_back({op,
                     {slot(std::move(x)), weight(std::move(w)), weight({out}), ints(std::move(stride)),
                      ints(std::move(padding)), ints(std::move(dilation)), whole(groups)},
                     note});
  };
  conv("aten::conv2d", {4, 6, 5}, {6, 4, 3, 2}, {2, 1}, {1, 0}, {1, 1}, 1, "plain");
  conv("aten::conv2d", {4, 7, 7}, {6, 2, 3, 3}, {1, 1}, {2, 2}, {2, 2}, 2, "grouped and dilated");
  conv("aten::conv2d", {4, 5, 5}, {8, 1, 3, 3}, {1, 1}, {1, 1}, {1, 1}, 4, "depthwise");
  conv("aten::conv1d", {4, 9}, {6, 2, 3}, {2}, {1}, {2}, 2, "grouped");
  conv("aten::conv3d", {2, 4, 4, 4}, {4, 2, 2, 3, 3}, {1, 2, 1}, {1, 1, 0}, {1, 1, 1}, 1, "plain");
  cases.push_back({"aten::conv2d", {slot({4, 5, 5}), frozen({6, 4, 3, 3}), frozen({6})}, "frozen"});
  cases.push_back({"aten::conv2d", {slot({4, 5, 5}), weight({6, 4, 1, 1}), none()}, "without bias"});
  const auto transposed = [&](const char* op, Shape x, Shape w, Ints stride, Ints padding, Ints extra, Ints dilation,
                              std::int64_t groups) {
    const std::int64_t out = w[1] * groups;
    cases.push_back({op,
                     {slot(std::move(x)), weight(std::move(w)), weight({out}), ints(std::move(stride)),
                      ints(std::move(padding)), ints(std::move(extra)), whole(groups), ints(std::move(dilation))}});
  };
  transposed("aten::conv_transpose1d", {4, 5}, {4, 3, 3}, {2}, {1}, {1}, {1}, 1);
  transposed("aten::conv_transpose2d.input", {4, 3, 4}, {4, 2, 3, 2}, {2, 1}, {0, 1}, {1, 0}, {1, 2}, 2);
  transposed("aten::conv_transpose3d.input", {2, 3, 3, 2}, {2, 2, 2, 2, 2}, {1, 1, 2}, {0, 0, 0}, {0, 0, 1}, {1, 1, 1},
             1);
}

void add_layers(std::vector<OpCase>& cases) {
  for (const Shape& x : {Shape{5}, Shape{3, 5}}) {
    cases.push_back({"aten::linear", {slot(x), weight({4, 5}), weight({4})}});
    cases.push_back({"aten::linear", {slot(x), frozen({4, 5}), frozen({4})}, "frozen"});
    cases.push_back({"aten::linear", {slot(x), weight({4, 5}), none()}, "without bias"});
  }
  for (const bool training : {true, false}) {
    cases.push_back({"aten::batch_norm",
                     {slot({3, 4}), weight({3}), weight({3}), buffer({3}), buffer({3}), flag(training), number(0.1),
                      number(1e-5), flag(true)},
                     training ? "training" : "by running statistics"});
    cases.push_back({"aten::instance_norm",
                     {slot({3, 4}), weight({3}), none(), buffer({3}), buffer({3}), flag(training), number(0.1),
                      number(1e-5), flag(true)},
                     training ? "training" : "by running statistics"});
  }
  for (const ReadBy by : {ReadBy::kOthers, ReadBy::kRelu, ReadBy::kReluInPlace, ReadBy::kReluAndOthers}) {
    for (const bool training : {true, false}) {
      cases.push_back({"aten::batch_norm",
                       {slot({3}), weight({3}), weight({3}), buffer({3}), buffer({3}), flag(training), number(0.1),
                        number(1e-5), flag(true)},
                       training ? "training, of rows" : "by running statistics, of rows",
                       false,
                       by});
    }
  }
  cases.push_back({"aten::batch_norm",
                   {slot({3}), none(), none(), none(), none(), flag(true), number(0.1), number(1e-5), flag(true)},
                   "without anything"});
  cases.push_back({"aten::layer_norm", {slot({2, 3, 4}), ints({3, 4}), weight({3, 4}), weight({3, 4})}});
  cases.push_back({"aten::layer_norm", {slot({2, 4}), ints({4})}, "without weights"});
  cases.push_back({"aten::group_norm", {slot({4, 3, 2}), whole(2), weight({4}), weight({4})}});
  for (const char* op : {"aten::max_pool2d", "aten::avg_pool2d"}) {
    cases.push_back({op, {slot({2, 5, 4}), ints({2, 3}), ints({2, 1}), ints({1, 1})}});
  }
  for (const char* op : {"aten::max_pool1d", "aten::avg_pool1d"}) {
    cases.push_back({op, {slot({2, 7}), ints({3}), ints({2}), ints({1})}});
  }
  for (const char* op : {"aten::adaptive_avg_pool2d", "aten::adaptive_max_pool2d"}) {
    cases.push_back({op, {slot({2, 5, 4}), ints({2, 3})}});
  }
  for (const char* op : {"aten::adaptive_avg_pool1d", "aten::adaptive_max_pool1d"}) {
    cases.push_back({op, {slot({2, 7}), ints({3})}});
  }
  cases.push_back({"aten::embedding", {weight({3, 4}), index({5})}});
  cases.push_back({"aten::embedding", {weight({3, 4}), index({5}), whole(1)}, "with a padding row"});
  cases.push_back({"aten::embedding", {weight({3, 4}), index({5}), whole(-1), flag(true)}, "scaled by frequency"});
}

void add_attention_and_recurrence(std::vector<OpCase>& cases) {
  const char* attention = "aten::scaled_dot_product_attention";
  const CaseArg q = slot({2, 5, 4}), k = slot({2, 6, 4}), v = slot({2, 6, 3});
  for (const double p : {0.0, 0.4}) {
    cases.push_back({attention, {q, k, v, none(), number(p)}, p > 0 ? "with dropout" : "plain"});
    cases.push_back({attention, {q, slot({2, 5, 4}), slot({2, 5, 3}), none(), number(p), flag(true)}, "causal"});
    cases.push_back({attention, {q, k, v, frozen({5, 6}), number(p)}, "with a shared mask"});
    cases.push_back(
        {attention, {q, k, v, slot({1, 5, 6}), number(p), flag(false), number(0.3)}, "with a mask, scaled"});
    cases.push_back(
        {attention,
         {slot({4, 5, 4}), slot({2, 5, 4}), slot({2, 5, 4}), none(), number(p), flag(false), none(), flag(true)},
         "grouped queries"});
  }
  const std::vector<std::pair<const char*, std::int64_t>> kinds = {
      {"aten::lstm.input", 4}, {"aten::gru.input", 3}, {"aten::rnn_tanh.input", 1}, {"aten::rnn_relu.input", 1}};
  for (const auto& [op, gates] : kinds) {
    for (const bool both : {false, true}) {
      for (const double p : {0.0, 0.5}) {
        const std::int64_t h = 3, directions = both ? 2 : 1;
        std::vector<CaseArg> params;
        for (std::int64_t i = 0; i < 2 * directions; ++i) {
          params.push_back(weight({gates * h, i < directions ? 4 : h * directions}));
          params.push_back(weight({gates * h, h}));
          if (both) params.insert(params.end(), {weight({gates * h}), weight({gates * h})});
        }
        // [T, N, F] from samples [N, T, F]: batch_first. The first states are the slot's own numbers.
        const CaseArg state = weight({2 * directions, 4, h});
        const bool lstm = gates == 4;
        cases.push_back({op,
                         {slot({3, 4}), lstm ? list({state, state}) : state, list(params), flag(both), whole(2),
                          number(p), flag(true), flag(both), flag(true)},
                         std::string(both ? "both ways" : "one way") + (p > 0 ? " with dropout" : "")});
      }
    }
  }
}

void add_shapes(std::vector<OpCase>& cases) {
  const CaseArg x = slot({2, 3, 4});
  for (const char* op : {"aten::softmax.int", "aten::log_softmax.int", "aten::glu"}) {
    cases.push_back({op, {x, whole(1)}});
    cases.push_back({op, {x, whole(-1)}});
  }
  for (const char* op : {"aten::cumsum", "aten::cumsum_"}) {
    for (const std::int64_t dim : {0, 2, -1}) cases.push_back({op, {x, whole(dim)}});
  }
  for (const char* op : {"aten::cat", "aten::stack"}) {
    cases.push_back({op, {list({x, x}), whole(1)}});
    cases.push_back({op, {list({x, x}), whole(0)}});
  }
  cases.push_back({"aten::cat", {list({slot({2, 4}), frozen({4, 3, 4})}), whole(1)}, "with a shared part"});
  cases.push_back({"aten::cat", {list({frozen({0}), slot({2, 4})}), whole(1)}, "with an empty tensor"});
  cases.push_back({"aten::unflatten.int", {x, whole(3), ints({2, 2})}});
  for (const std::int64_t dim : {0, 2, -1, -2}) cases.push_back({"aten::unsqueeze", {x, whole(dim)}});
  cases.push_back({"aten::squeeze.dim", {slot({1, 3}), whole(1)}});
  cases.push_back({"aten::squeeze.dim", {slot({1, 3}), whole(2)}});
  for (const std::int64_t dim : {0, 2, -1}) {
    cases.push_back({"aten::select.int", {x, whole(dim), whole(1)}});
    cases.push_back({"aten::slice.Tensor", {x, whole(dim), whole(1), none(), whole(1)}});
    cases.push_back({"aten::narrow", {x, whole(dim), whole(1), whole(1)}});
    cases.push_back({"aten::unbind.int", {x, whole(dim)}});
    cases.push_back({"aten::split.Tensor", {x, whole(2), whole(dim)}});
    cases.push_back({"aten::chunk", {x, whole(2), whole(dim)}});
  }
  cases.push_back({"aten::split_with_sizes", {x, ints({1, 2}), whole(2)}});
  cases.push_back({"aten::select_scatter", {x, slot({3, 4}), whole(1), whole(1)}});
  cases.push_back({"aten::select_scatter", {x, slot({2, 3}), whole(-1), whole(-2)}});
  cases.push_back({"aten::select_scatter", {x, weight({2, 3, 4}), whole(0), whole(3)}, "of a weight"});
  cases.push_back({"aten::select_scatter", {frozen({4, 2, 3}), slot({2}), whole(2), whole(0)}, "into a shared value"});
  cases.push_back({"aten::slice_scatter", {x, slot({2, 3, 2}), whole(-1), whole(1), whole(3), whole(1)}});
  cases.push_back({"aten::slice_scatter", {x, frozen({2, 2, 3, 4}), whole(0), none(), whole(2), whole(1)}, "shared"});
  cases.push_back({"aten::diagonal_scatter", {x, slot({2, 3}), whole(0), whole(-2), whole(-1)}});
  cases.push_back({"aten::diagonal_scatter", {x, slot({3, 2}), whole(1), whole(1), whole(3)}});
  cases.push_back({"aten::flatten.using_ints", {x, whole(1), whole(-1)}});
  cases.push_back({"aten::flatten.using_ints", {x, whole(0), whole(1)}});
  cases.push_back({"aten::transpose.int", {x, whole(0), whole(-1)}});
  cases.push_back({"aten::permute", {x, ints({0, 3, -2, 1})}});
  for (const char* op : {"aten::view", "aten::reshape", "aten::_unsafe_view"}) {
    cases.push_back({op, {x, ints({-1, 6})}});
    cases.push_back({op, {x, ints({4, 24})}});
    cases.push_back({op, {x, ints({2, -1, 4, 3})}});
  }
  cases.push_back({"aten::constant_pad_nd", {x, ints({1, 2, 0, 1}), number(0.5)}});
}

void add_random(std::vector<OpCase>& cases) {
  const CaseArg x = slot({3, 4});
  for (const char* op : {"dropout", "feature_dropout", "alpha_dropout", "feature_alpha_dropout"}) {
    for (const char* suffix : {"", "_"}) {
      cases.push_back({std::string("aten::") + op + suffix, {x, number(0.4), flag(true)}, "training"});
    }
  }
  cases.push_back({"aten::dropout", {x, number(0.4), flag(false)}, "off"});
  cases.push_back({"aten::native_dropout", {x, number(0.4), flag(true)}});
  cases.push_back({"aten::bernoulli", {mask({3, 4})}, "of zeros and ones"});
  for (const char* op : {"aten::bernoulli.p", "aten::bernoulli_.float"}) cases.push_back({op, {x, number(0.3)}});
  cases.push_back({"aten::bernoulli_.Tensor", {x, mask({3, 4})}});
  for (const char* op : {"aten::rand", "aten::randn"}) cases.push_back({op, {ints({4, 3}), literal(DType::kFloat64)}});
  for (const char* op : {"aten::rand_like", "aten::randn_like", "aten::exponential_"}) cases.push_back({op, {x}});
  cases.push_back({"aten::normal_", {x, number(1), number(2)}});
  cases.push_back({"aten::uniform_", {x, number(-1), number(2)}});
  cases.push_back({"aten::randint", {whole(5), ints({4, 3})}});
  cases.push_back({"aten::randint.low", {whole(-2), whole(5), ints({4, 3})}});
  cases.push_back({"aten::randint_like", {x, whole(5)}});
  cases.push_back({"aten::randint_like.low_dtype", {x, whole(-2), whole(5)}});
  cases.push_back({"aten::randperm", {whole(7)}});
  cases.push_back({"aten::rrelu", {x, number(0.1), number(0.4), flag(true)}});
}

// Element by element, from the schema: tensors of unlike ranks, numbers of 0.5.
OpCase pointwise(const BatchingRule& rule) {
  const c10::OperatorHandle op = find_op({rule.op, {}, {}, "", "", false, {}});
  OpCase out{rule.op, {}, "from its schema"};
  const auto is = [&](const char* part) { return rule.op.find(part) != std::string::npos; };
  const bool logic = is("bitwise") || is("logical");
  const bool positive = is("::log") || is("sqrt") || is("pow");
  int tensors = 0;
  for (const c10::Argument& argument : op.schema().arguments()) {
    if (argument.default_value() && argument.name() != "min") break;
    const auto kind = argument.type()->kind();
    if (kind == c10::TypeKind::TensorType) {
      const bool condition = argument.name() == "condition" || argument.name() == "mask" || logic;
      CaseArg tensor = tensors++ == 0 ? slot({3, 4}) : weight({3, 4});
      if (positive && tensors == 1) tensor.tensors.front().from = From::kPositive;
      out.args.push_back(condition ? mask({3, 4}) : tensor);
    } else if (argument.type()->isSubtypeOf(*c10::IntType::get())) {
      out.args.push_back(argument.name() == "dtype" ? literal(DType::kFloat32) : whole(1));
    } else if (kind == c10::TypeKind::StringType || argument.name() == "rounding_mode") {
      out.args.push_back(none());
    } else {
      out.args.push_back(number(0.5));
    }
  }
  return out;
}

// By ATen's numbers: each, mean, sum.
constexpr std::int64_t kReductions[] = {0, 1, 2};

void add_losses(std::vector<OpCase>& cases) {
  const CaseArg target{{}, {{{kBatch, 3}, From::kTarget}}}, unit{{}, {{{kBatch, 3}, From::kUnit}}};
  for (const std::int64_t reduction : kReductions) {
    const CaseArg how = whole(reduction);
    for (const char* op : {"aten::mse_loss", "aten::l1_loss", "aten::soft_margin_loss"}) {
      cases.push_back({op, {slot({3}), target, how}});
    }
    for (const double p : {0.4, 1.0}) {
      cases.push_back({"aten::huber_loss", {slot({3}), target, how, number(p)}});
      cases.push_back({"aten::smooth_l1_loss", {slot({3}), target, how, number(p)}});
    }
    cases.push_back({"aten::smooth_l1_loss", {slot({3}), target, how, number(0)}, "without a bend"});
    cases.push_back({"aten::binary_cross_entropy", {unit, target, none(), how}});
    cases.push_back({"aten::binary_cross_entropy", {unit, target, frozen({3}), how}, "with weights"});
    cases.push_back({"aten::binary_cross_entropy_with_logits", {slot({3}), target, none(), none(), how}});
    cases.push_back({"aten::binary_cross_entropy_with_logits",
                     {slot({3}), target, none(), buffer({3}), how},
                     "with a weight of the positive class"});
    for (const bool log : {false, true}) {
      cases.push_back({"aten::kl_div", {slot({3}), target, how, flag(log)}});
      cases.push_back(
          {"aten::poisson_nll_loss", {log ? slot({3}) : unit, target, flag(log), flag(false), number(1e-8), how}});
    }
    for (const CaseArg& weights : {none(), buffer({3})}) {
      for (const std::int64_t ignored : {-100, 1}) {
        cases.push_back({"aten::nll_loss_nd", {slot({3}), index({}), weights, how, whole(ignored)}});
        for (const double smoothing : {0.0, 0.3}) {
          const std::string note = fmt::format("reduction {}, ignoring {}, smoothing {}{}", reduction, ignored,
                                               smoothing, weights.tensors.empty() ? "" : ", with weights");
          cases.push_back({"aten::cross_entropy_loss",
                           {slot({3}), index({}), weights, how, whole(ignored), number(smoothing)},
                           note});
          cases.push_back({"aten::cross_entropy_loss",
                           {slot({3, 2}), index({2}), weights, how, whole(ignored), number(smoothing)},
                           "of positions, " + note});
        }
      }
      cases.push_back({"aten::cross_entropy_loss",
                       {slot({3}), target, weights, how, whole(-100), number(0.3)},
                       "of probabilities"});
    }
  }
}

void add_fourier(std::vector<OpCase>& cases) {
  const CaseArg x = slot({4, 6}), z = complex_slot({4, 6});
  const auto word = [](const char* text) { return literal(std::string(text)); };
  struct Transform {
    const char* name;
    bool from_complex, to_complex;
  };
  for (const auto& [name, from_complex, to_complex] :
       {Transform{"fft", true, true}, Transform{"ifft", true, true}, Transform{"rfft", false, true},
        Transform{"irfft", true, false}, Transform{"hfft", true, false}, Transform{"ihfft", false, true}}) {
    const CaseArg& given = from_complex ? z : x;
    const std::string one = std::string("aten::fft_") + name, two = one + "2", any = one + "n";
    for (const std::int64_t dim : {-1, 0, 1})
      cases.push_back({one, {given, none(), whole(dim), none()}, "", to_complex});
    cases.push_back({one, {given, whole(5), whole(-2), word("ortho")}, "of another length", to_complex});
    cases.push_back({two, {given, none(), ints({-2, -1}), word("ortho")}, "", to_complex});
    cases.push_back({two, {given, ints({5, 3}), ints({2, 1}), word("forward")}, "of other lengths", to_complex});
    cases.push_back({any, {given, none(), none(), none()}, "of all dimensions", to_complex});
    cases.push_back({any, {given, ints({3, 7}), none(), none()}, "of the last dimensions", to_complex});
    cases.push_back({any, {given, none(), ints({0, -1}), word("ortho")}, "of dimensions", to_complex});
  }
  cases.push_back({"aten::fft_fft", {x}, "of real numbers", true});
  for (const char* op : {"aten::fft_fftshift", "aten::fft_ifftshift"}) {
    cases.push_back({op, {x, none()}, "all dimensions"});
    cases.push_back({op, {z, ints({1, -1})}, "", true});
  }
}

void add_complex(std::vector<OpCase>& cases) {
  const CaseArg x = slot({3, 4}), z = complex_slot({3, 4});
  cases.push_back({"aten::view_as_complex", {slot({3, 2})}, "", true});
  for (const char* op : {"view_as_real", "real", "imag", "angle", "abs"}) {
    cases.push_back({std::string("aten::") + op, {z}, "of complex numbers"});
  }
  cases.push_back({"aten::resolve_neg", {x}});
  for (const char* op : {"conj", "_conj", "conj_physical", "resolve_conj", "exp", "tanh"}) {
    cases.push_back({std::string("aten::") + op, {z}, "of complex numbers", true});
  }
  cases.push_back({"aten::complex", {x, slot({3, 4})}, "", true});
  cases.push_back({"aten::polar", {x, weight({4})}, "", true});
  cases.push_back({"aten::mul.Tensor", {z, complex_weight({4})}, "of complex numbers", true});
  cases.push_back({"aten::mul.Tensor", {z, weight({3, 1})}, "of complex and real numbers", true});
  cases.push_back({"aten::mul.Tensor", {x, literal(Complex{0.5, -2})}, "by a complex number", true});
  cases.push_back({"aten::div.Tensor", {x, complex_weight({3, 4})}, "by complex numbers", true});
  cases.push_back({"aten::linear", {z, complex_weight({2, 4}), complex_weight({2})}, "of complex numbers", true});
  cases.push_back({"aten::conv1d", {z, complex_weight({2, 3, 2}), complex_weight({2})}, "of complex numbers", true});
  cases.push_back(
      {"aten::conv2d", {complex_slot({3, 4, 4}), complex_weight({2, 3, 2, 2}), none()}, "of complex numbers", true});
  cases.push_back(
      {"aten::conv_transpose1d", {z, complex_weight({3, 2, 2}), complex_weight({2})}, "of complex numbers", true});
  cases.push_back({"aten::dropout", {z, number(0.4), flag(true)}, "of complex numbers", true});
  for (const char* op : {"aten::rand", "aten::randn"}) {
    cases.push_back({op, {ints({4, 3}), literal(DType::kComplex128)}, "of complex numbers", true});
  }
  add_fourier(cases);
}

// A graph under construction.
struct Builder {
  DType floats;
  bool rounded;  // what is of slots and samples, to bfloat16
  Model model = {};
  std::uint64_t seed = 50;
  Samples samples = {};

  [[nodiscard]] Graph& graph() { return model.graph; }

  ValueId value(const std::string& name, Shape shape, DType dtype) {
    graph().values.push_back({name, std::move(shape), dtype, false});
    return static_cast<ValueId>(graph().values.size() - 1);
  }

  ValueId input(const Shape& shape, DType dtype, const at::Tensor& data) {
    graph().inputs.push_back(value(fmt::format("x{}", graph().inputs.size()), shape, dtype));
    samples.inputs.push_back(data);
    return graph().inputs.back();
  }

  ValueId add_weight(const Shape& shape, bool trained, bool positive) {
    const std::string name = fmt::format("w{}", graph().weights.size());
    Weight w{name, shape, floats, {Init::Kind::kNormal, 0.5, -1}, trained, value(name, shape, floats), nullptr, {}};
    if (positive) w.init = {Init::Kind::kOnes, 0, -1};
    graph().weights.push_back(std::move(w));
    return graph().weights.back().value;
  }

  ValueId node(const std::string& op, std::vector<Arg> args, const Shape& shape) {
    const ValueId out = value(op, shape, floats);
    graph().nodes.push_back({op, std::move(args), {out}, op, "case", false, {}});
    return out;
  }

  [[nodiscard]] DType complex() const { return floats == DType::kFloat64 ? DType::kComplex128 : DType::kComplex64; }

  ValueId complex_of(const Tensor& t) {
    Tensor pairs = t;
    pairs.shape.push_back(2);
    pairs.from = t.from == From::kComplex ? From::kSlot : From::kWeight;
    const ValueId out = node("aten::view_as_complex", {tensor(pairs)}, t.shape);
    graph().values[static_cast<std::size_t>(out)].dtype = complex();
    return out;
  }

  ValueId tensor(const Tensor& t) {
    Shape sizes = t.shape;
    if (!sizes.empty() && sizes[0] == kBatch) sizes[0] = 4;
    const std::int64_t elements = elements_of(sizes, 4);
    const bool complex = t.from == From::kComplex || t.from == From::kComplexWeight;
    if (complex) return complex_of(t);
    switch (t.from) {
      case From::kWeight:
        return add_weight(t.shape, true, false);
      case From::kFrozen:
        return add_weight(t.shape, false, false);
      case From::kBuffer:
        return add_weight(t.shape, false, true);
      case From::kIndex:
        return input(t.shape, DType::kInt64, counted_labels(elements, 3, seed++).view(sizes));
      case From::kMask:
        return input(t.shape, DType::kBool, counted_labels(elements, 2, seed++).view(sizes).to(at::kBool));
      case From::kTarget:
        return input(t.shape, floats, at::sigmoid(testing::counted_normal(sizes, floats, seed++)));
      case From::kSlot:
      case From::kPositive:
      case From::kUnit:
      case From::kComplex:
      case From::kComplexWeight:
        break;
    }
    const ValueId x = input(t.shape, floats, testing::counted_normal(sizes, floats, seed++));
    ValueId own = node("aten::mul.Tensor", {x, add_weight({}, true, false)}, t.shape);
    if (t.from == From::kUnit) own = node("aten::sigmoid", {own}, t.shape);
    if (t.from == From::kPositive) own = node("aten::softplus", {own}, t.shape);
    return rounded ? node("aten::to.dtype", {own, DType::kBFloat16}, t.shape) : own;
  }
};

Model built(const OpCase& op_case, Builder builder) {
  builder.model.name = op_case.op + " " + op_case.note;
  Graph& graph = builder.graph();
  std::vector<Arg> args;
  for (const CaseArg& arg : op_case.args) {
    if (arg.tensors.empty()) {
      args.push_back(arg.literal);
    } else if (arg.list) {
      std::vector<ValueId> ids;
      for (const Tensor& t : arg.tensors) ids.push_back(builder.tensor(t));
      args.emplace_back(ids);
    } else {
      args.emplace_back(builder.tensor(arg.tensors.front()));
    }
  }
  const c10::OperatorHandle op = find_op({op_case.op, {}, {}, "", "", false, {}});
  Node call{op_case.op, std::move(args), {}, "op", "case", false, {}};
  const std::size_t returned = op.schema().returns().size();
  for (std::size_t o = 0; o < std::max<std::size_t>(returned, 1); ++o) {
    const DType dtype = op_case.complex ? builder.complex() : builder.floats;
    call.outputs.push_back(builder.value(fmt::format("y{}", o), {}, dtype));
  }
  graph.nodes.push_back(call);
  // Outputs of any kind, joined in one number per slot; the last weight gives a gradient where the op has none.
  ValueId sum = builder.add_weight({}, true, false);
  for (ValueId y : call.outputs) {
    if (op_case.read_by != ReadBy::kOthers) {
      const bool in_place = op_case.read_by == ReadBy::kReluInPlace;
      const ValueId relu = builder.node(in_place ? "aten::relu_" : "aten::relu", {y}, {});
      y = op_case.read_by == ReadBy::kReluAndOthers ? builder.node("aten::add.Tensor", {y, relu}, {}) : relu;
    }
    if (op_case.complex) y = builder.node("aten::view_as_real", {builder.node("aten::resolve_conj", {y}, {})}, {});
    const ValueId real = builder.node("aten::to.dtype", {y, builder.floats}, {});
    const ValueId spread = builder.node("aten::tanh", {real}, {});
    const ValueId total = builder.node("aten::sum", {spread}, {});
    sum = builder.node("aten::add.Tensor", {sum, total}, {});
  }
  graph.outputs = {builder.node(
      "aten::expand", {builder.node("aten::unsqueeze", {sum, std::int64_t{0}}, {1}), std::vector<std::int64_t>{4}},
      {kBatch})};
  builder.model.recipe.loss = Loss::kMse;
  builder.model.recipe.dtype = builder.floats;
  builder.model.recipe.batch_size = 4;
  builder.samples.target = at::zeros({4}, builder.floats == DType::kFloat64 ? at::kDouble : at::kFloat);
  builder.model.batch.parts = {builder.samples};
  return builder.model;
}

}  // namespace

std::vector<OpCase> op_cases() {
  std::vector<OpCase> cases;
  add_convolutions(cases);
  add_layers(cases);
  add_attention_and_recurrence(cases);
  add_shapes(cases);
  add_random(cases);
  add_losses(cases);
  std::set<std::string> written;
  for (const OpCase& c : cases) written.insert(c.op);
  for (const BatchingRule& rule : batching_rules()) {
    if (rule.family == "complex" || rule.family == "fft") continue;  // add_complex()
    if (!written.contains(rule.op)) cases.push_back(pointwise(rule));
  }
  add_complex(cases);
  return cases;
}

Model model_of(const OpCase& op_case, DType floats) { return built(op_case, {floats, false}); }

Model model_in_bfloat16_of(const OpCase& op_case, bool rounded) {
  return in_bfloat16(built(op_case, {DType::kFloat32, rounded}));
}

}  // namespace hfta::fusion::testing
