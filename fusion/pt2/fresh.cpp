#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <string_view>

#include "base/text.hpp"
#include "fusion/adapters/peft.hpp"
#include "fusion/graph/init_rules.hpp"
#include "fusion/pt2/archive.hpp"
#include "fusion/pt2/options.hpp"
#include "fusion/pt2/recognise.hpp"
#include "fusion/pt2/values.hpp"

namespace hfta::fusion::pt2 {
namespace {

using Kind = Init::Kind;

/// Modules of torch.nn, and the op that each is, whose row says how its parameters start.
struct ModuleRow {
  std::string_view name;
  bool whole;  ///< The class has just this name; else it is part of it: "Norm" of "BatchNorm2d".
  const char* op;
};

constexpr std::array<ModuleRow, 10> kModules = {{{"MultiheadAttention", true, "aten::scaled_dot_product_attention"},
                                                 {"Norm", false, "aten::batch_norm"},
                                                 {"LSTM", false, "aten::lstm.input"},
                                                 {"GRU", false, "aten::gru.input"},
                                                 {"RNN", false, "aten::rnn_tanh.input"},
                                                 {"Embedding", true, "aten::embedding"},
                                                 {"EmbeddingBag", true, "aten::embedding_bag"},
                                                 {"Bilinear", true, "aten::bilinear"},
                                                 {"Linear", false, "aten::linear"},
                                                 {"Conv", false, "aten::convolution"}}};

/// Null: none that is known.
const OpTraits* traits_of_module(std::string_view name) {
  const auto is_it = [&](const ModuleRow& row) {
    return row.whole ? name == row.name : name.find(row.name) != std::string_view::npos;
  };
  const auto found = std::find_if(kModules.begin(), kModules.end(), is_it);
  return found == kModules.end() ? nullptr : op_traits(found->op);
}

class Starter {
 public:
  Starter(const Graph& graph, const std::map<std::string, std::string>& classes) : graph_(graph), classes_(classes) {
    for (const Weight& weight : graph.weights) {
      shapes_[weight.name] = weight.model_shape();
      for (const std::string& name : weight.tied) shapes_[name] = weight.model_shape();
    }
  }

  // By what its module says, if the values agree; else by what they show themselves.
  void start(Weight& weight, const std::string& where) const {
    if (is_peft_constant(weight.name)) return;
    if (const std::optional<Init> adapter = peft_init(weight.name, weight.model_shape())) {
      return start_adapter(weight, *adapter, where);
    }
    const int zero_row = zero_padding(weight);
    const Sample sample = sample_of(*weight.stored, zero_row);
    const std::optional<Init> own = own_init(weight);
    const bool drawn = own && fits(sample, *own);
    // Values that are all the same were set, not drawn: another draw has them again. A single one may be either.
    if (sample.constant && !(drawn && elements_of(weight.shape, 1) == 1 && sample.largest != 0)) return;
    const std::optional<Init> init = drawn ? own : recognise(sample, *weight.stored);
    if (!init) fail_unknown(weight, sample, where);
    weight.init = *init;
    weight.init.zero_row = zero_row;
    weight.stored = nullptr;
  }

  void reset(Weight& weight) const {
    const std::optional<Init> own = own_init(weight);
    if (!own) return;
    weight.init = *own;
    weight.stored = nullptr;
  }

 private:
  // PEFT draws one matrix of an adapter and leaves the other at zero. A second one that is not zero was trained, or
  // goes with base weights that were changed for it (PiSSA, OLoRA), so that no other start is the pretrained model.
  static void start_adapter(Weight& weight, const Init& usual, const std::string& where) {
    const Sample sample = sample_of(*weight.stored, -1);
    if (usual.kind == Kind::kZeros && sample.largest != 0) {
      fail(where, fmt::format(
                      "init: fresh: found values in '{}', wanted zeros, as in a PEFT adapter before it is trained (one "
                      "of PiSSA or OLoRA belongs to base weights that were changed with it); wanted init: exported, "
                      "or an adapter as init_lora_weights=True makes it",
                      printable(weight.name)));
    }
    const std::optional<Init> init =
        fits(sample, usual) || usual.kind == Kind::kZeros ? std::optional(usual) : recognise(sample, *weight.stored);
    if (!init) fail_unknown(weight, sample, where);
    weight.init = *init;
    weight.stored = nullptr;
  }

  [[noreturn]] static void fail_unknown(const Weight& weight, const Sample& sample, const std::string& where) {
    const std::size_t dot = weight.name.rfind('.');
    const std::string module = dot == std::string::npos ? "the model" : "module '" + weight.name.substr(0, dot) + "'";
    double square = 0;
    for (const double value : sample.values) square += value * value;
    const double spread = std::sqrt(square / static_cast<double>(std::max<std::size_t>(1, sample.values.size())));
    const std::string why =
        sample.values.size() < kFewest
            ? fmt::format("its {} values fit no default of a layer, and are too few to fit anything else",
                          sample.values.size())
            : "its values fit no known first weights, as those of a trained model do not";
    fail(where,
         fmt::format(
             "init: fresh: cannot tell what '{}' {} of {} was drawn from (its mean square is {:.4g} squared): {}; "
             "wanted a model exported before it was trained, init: exported (the file's weights), init: "
             "{{jitter: 0.01}} (near them, another start for each seed), or freeze: {}",
             printable(weight.name), to_text(weight.model_shape()), printable(module), spread, why,
             printable(weight.name)));
  }

  // The distribution that the innermost module that knows the weight, under any of its names, draws it from.
  [[nodiscard]] std::optional<Init> own_init(const Weight& weight) const {
    std::vector<std::string> names = weight.tied;
    names.insert(names.begin(), weight.name);
    for (const std::string& name : names) {
      std::optional<Init> init = init_as(name, weight.model_shape());
      if (init) return weight.pairs ? of_parts(*init) : init;
    }
    return std::nullopt;
  }

  [[nodiscard]] std::optional<Init> init_as(const std::string& name, const Shape& shape) const {
    for (std::size_t dot = name.rfind('.'); dot != std::string::npos; dot = dot == 0 ? dot : name.rfind('.', dot - 1)) {
      if (std::optional<Init> init = init_within(name.substr(0, dot), name.substr(dot + 1), shape)) return init;
      if (dot == 0) break;
    }
    // A model that is itself a layer has its weights at the root.
    return init_within("", name, shape);
  }

  // The distribution that `name` within the module of that path starts from; none: the kind of module does not say.
  [[nodiscard]] std::optional<Init> init_within(const std::string& path, const std::string& name,
                                                const Shape& shape) const {
    const OpTraits* op = traits_of_module(kind_of(path));
    if (op == nullptr) return std::nullopt;
    return init_of(*op, name, shape, [&](const std::string& own) {
      const auto found = shapes_.find(path.empty() ? own : path + "." + own);
      return found == shapes_.end() ? Shape{} : found->second;
    });
  }

  // The row of an embedding that padding_idx leaves at zero; -1: there is none.
  [[nodiscard]] int zero_padding(const Weight& weight) const {
    const int row = padding_row(weight.value);
    if (row < 0 || weight.shape.size() != 2 || row >= weight.shape[0]) return -1;
    const Values values(*weight.stored);
    for (std::int64_t i = 0; i < weight.shape[1]; ++i) {
      if (values[row * weight.shape[1] + i] != 0) return -1;
    }
    return row;
  }

  [[nodiscard]] std::string_view kind_of(const std::string& path) const {
    const auto found = classes_.find(path);
    if (found == classes_.end() || !found->second.starts_with("torch.nn.modules.")) return "";
    return std::string_view(found->second).substr(found->second.rfind('.') + 1);
  }

  [[nodiscard]] int padding_row(ValueId table) const {
    for (const Node& node : graph_.nodes) {
      const OpTraits* op = op_traits(node.op);
      const Arg* looked_up = op == nullptr ? nullptr : argument(node, op->table);
      if (looked_up == nullptr || *looked_up != Arg(table)) continue;
      const Arg* padding = argument(node, "padding_idx");
      const auto* row = padding == nullptr ? nullptr : std::get_if<std::int64_t>(padding);
      if (row != nullptr) return static_cast<int>(*row);
    }
    return -1;
  }

  const Graph& graph_;
  const std::map<std::string, std::string>& classes_;
  std::map<std::string, Shape> shapes_;
};

bool is_statistic(const Weight& weight) {
  return weight.name.ends_with("running_mean") || weight.name.ends_with("running_var") ||
         weight.name.ends_with("num_batches_tracked");
}

}  // namespace

void set_start(Graph& graph, const ImportOptions& options, const std::map<std::string, std::string>& classes) {
  const Starter starter(graph, classes);
  for (Weight& weight : graph.weights) {
    if (options.fresh && weight.trained) starter.start(weight, options.where);
    if (options.fresh && is_statistic(weight)) starter.reset(weight);
    if (!options.fresh && weight.trained && options.jitter > 0) weight.init = {Kind::kJittered, options.jitter};
  }
}

}  // namespace hfta::fusion::pt2
