#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <string_view>

#include "base/text.hpp"
#include "fusion/pt2/archive.hpp"
#include "fusion/pt2/options.hpp"
#include "fusion/pt2/recognise.hpp"
#include "fusion/pt2/values.hpp"

namespace hfta::fusion::pt2 {
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

/// A module of torch.nn, and the shapes of its own weights.
struct Module {
  std::string_view kind;  ///< "Linear".
  std::string path;
  const std::map<std::string, Shape>& shapes;  ///< Of all weights, by name.

  [[nodiscard]] Shape shape(const std::string& name) const {
    const auto found = shapes.find(path.empty() ? name : path + "." + name);
    return found == shapes.end() ? Shape{} : found->second;
  }
  [[nodiscard]] bool is(std::string_view text) const { return kind.find(text) != std::string_view::npos; }
};

// Weight and bias of linear layers and convolutions: kaiming_uniform(a=sqrt(5)) comes to 1/sqrt(fan_in).
Init dense_init(const Module& module) {
  if (module.kind == "Bilinear") return uniform_by(size(module.shape("weight"), 1));
  return uniform_by(fan_in(module.shape("weight")));
}

std::optional<Init> norm_init(const std::string& name) {
  if (name == "weight" || name == "running_var") return kOnes;
  if (name == "bias" || name == "running_mean" || name == "num_batches_tracked") return kZeros;
  return std::nullopt;
}

Init recurrent_init(const Module& module) {
  const double gates = module.is("LSTM") ? 4 : module.is("GRU") ? 3 : 1;
  const Shape input = module.shape(module.is("Cell") ? "weight_ih" : "weight_ih_l0");
  return uniform_by(size(input, 0) / gates);
}

std::optional<Init> attention_init(const std::string& name, const Shape& shape) {
  if (name.ends_with("proj_weight")) return xavier_uniform(shape);
  if (name == "bias_k" || name == "bias_v") return xavier_normal(shape);
  if (name == "in_proj_bias" || name == "out_proj.bias") return kZeros;
  if (name == "out_proj.weight") return uniform_by(fan_in(shape));
  return std::nullopt;
}

/// What `name` within `module` starts from; none: this kind of module does not say.
std::optional<Init> init_in(const Module& module, const std::string& name, const Shape& shape) {
  if (module.kind == "MultiheadAttention") return attention_init(name, shape);
  if (name.find('.') != std::string::npos) return std::nullopt;
  if (module.is("Norm")) return norm_init(name);
  if (module.is("LSTM") || module.is("GRU") || module.is("RNN")) return recurrent_init(module);
  if (module.kind == "Embedding" || module.kind == "EmbeddingBag") return Init{Kind::kNormal, 1};
  const bool dense = module.is("Linear") || module.kind == "Bilinear" || module.is("Conv");
  if (dense && (name == "weight" || name == "bias")) return dense_init(module);
  return std::nullopt;
}

class Starter {
 public:
  Starter(const Graph& graph, const std::map<std::string, std::string>& classes) : graph_(graph), classes_(classes) {
    for (const Weight& weight : graph.weights) {
      shapes_[weight.name] = weight.shape;
      for (const std::string& name : weight.tied) shapes_[name] = weight.shape;
    }
  }

  // By what its module says, if the values agree; else by what they show themselves.
  void start(Weight& weight, const std::string& where) const {
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
  [[noreturn]] static void fail_unknown(const Weight& weight, const Sample& sample, const std::string& where) {
    const std::size_t dot = weight.name.rfind('.');
    const std::string module = dot == std::string::npos ? "the model" : "module '" + weight.name.substr(0, dot) + "'";
    double square = 0;
    for (const double value : sample.values) square += value * value;
    const double spread = std::sqrt(square / static_cast<double>(std::max<std::size_t>(1, sample.values.size())));
    fail(where,
         fmt::format(
             "init: fresh: cannot tell what '{}' {} of {} was drawn from (its mean square is {:.4g} squared): its "
             "values fit no known first weights, as those of a trained model do not; wanted a model exported "
             "before it was trained, init: exported (the file's weights), init: {{jitter: 0.01}} (near them, "
             "another start for each seed), or freeze: {}",
             printable(weight.name), to_text(weight.shape), printable(module), spread, printable(weight.name)));
  }

  // What the innermost module that knows the weight draws it from, under any of its names.
  [[nodiscard]] std::optional<Init> own_init(const Weight& weight) const {
    std::vector<std::string> names = weight.tied;
    names.insert(names.begin(), weight.name);
    for (const std::string& name : names) {
      if (std::optional<Init> init = init_as(name, weight.shape)) return init;
    }
    return std::nullopt;
  }

  [[nodiscard]] std::optional<Init> init_as(const std::string& name, const Shape& shape) const {
    for (std::size_t dot = name.rfind('.'); dot != std::string::npos; dot = dot == 0 ? dot : name.rfind('.', dot - 1)) {
      const Module module{kind_of(name.substr(0, dot)), name.substr(0, dot), shapes_};
      if (std::optional<Init> init = init_in(module, name.substr(dot + 1), shape)) return init;
      if (dot == 0) break;
    }
    // A model that is itself a layer has its weights at the root.
    return init_in({kind_of(""), "", shapes_}, name, shape);
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
      if (node.op != "aten::embedding" && node.op != "aten::embedding_bag.padding_idx") continue;
      if (node.args.empty() || node.args[0] != Arg(table)) continue;
      for (std::size_t i = 0; i < node.names.size(); ++i) {
        const auto* row = std::get_if<std::int64_t>(&node.args[i]);
        if (node.names[i] == "padding_idx" && row != nullptr) return static_cast<int>(*row);
      }
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
