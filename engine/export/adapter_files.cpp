#include "engine/export/adapter_files.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>
#include <string_view>
#include <utility>

#include "base/error.hpp"
#include "base/text.hpp"
#include "engine/export/matrix.hpp"
#include "fusion/adapters/peft.hpp"

namespace hfta::engine {
namespace {

using fusion::Adapter;
using fusion::LoraKind;
using fusion::PeftName;
using fusion::TensorView;
using nlohmann::json;

constexpr std::string_view kWrapper = "base_model.model.";

[[noreturn]] void fail(const std::string& what) { throw Error(ErrorKind::kConfig, "export: " + what); }

std::string module_of(const std::string& name) {
  const std::size_t dot = name.rfind('.');
  return dot == std::string::npos ? "" : name.substr(0, dot);
}

// A number as JSON; whole numbers are integers, like the alphas in PEFT's own folders.
json number(double value) {
  if (std::floor(value) == value && std::abs(value) < 0x1p53) return static_cast<std::int64_t>(value);
  return value;
}

}  // namespace

struct TrainedAdapters::Impl {
  const fusion::ExportedModel& model;
  const fusion::ImportOptions& options;
  const ModelState& state;
  const Tensors& slot;
  bool wrapped;  ///< PEFT wrapped the model before it was exported.
  std::vector<Adapter> adapters = {};
  std::map<std::string, const TensorView*> by_name = {};
  std::vector<std::vector<std::string>> tied = {};  ///< Names of one tensor.

  [[nodiscard]] const TensorView& tensor(const std::string& name) const {
    const auto found = by_name.find(name);
    if (found != by_name.end()) return *found->second;
    throw Error(ErrorKind::kStorage, fmt::format("found no values of '{}' in the trial's state", printable(name)));
  }

  // The true rank of an adapter. In adapters that the config put in, the rest is padding.
  [[nodiscard]] std::int64_t rank_of(const Adapter& adapter) const {
    return options.lora ? options.lora->rank : tensor(adapter.a).shape.at(0);
  }
  [[nodiscard]] Matrix a_of(const Adapter& adapter) const {
    Matrix a = matrix_of(tensor(adapter.a));
    return options.lora ? corner(a, rank_of(adapter), a.columns) : a;
  }
  [[nodiscard]] Matrix b_of(const Adapter& adapter) const {
    Matrix b = matrix_of(tensor(adapter.b));
    return options.lora ? corner(b, b.rows, rank_of(adapter)) : b;
  }

  [[nodiscard]] bool is_tied(const std::string& name) const {
    return std::any_of(tied.begin(), tied.end(),
                       [&](const auto& names) { return std::count(names.begin(), names.end(), name) > 0; });
  }

  // ---- PEFT's folder ----

  struct Saved {
    std::string file_name, module;
    const TensorView* tensor;
  };
  [[nodiscard]] std::vector<Saved> saved_modules() const;
  [[nodiscard]] json config(const std::vector<Saved>& saved) const;
  void check_wrappable(const Adapter& adapter) const;

  // ---- Merged ----

  void check_mergeable(const Adapter& adapter) const;
  [[nodiscard]] Matrix merged_weight(const Adapter& adapter) const;
};

TrainedAdapters::~TrainedAdapters() = default;

TrainedAdapters::TrainedAdapters(const fusion::ExportedModel& model, const fusion::ImportOptions& options,
                                 const ModelState& state, const Tensors& slot)
    : impl_(std::make_unique<Impl>(Impl{model, options, state, slot, fusion::is_peft_model(model.parameters())})) {
  fusion::ImportOptions plain = options;  // first values are not needed
  plain.fresh = false;
  plain.jitter = 0;
  plain.lora.reset();
  plain.freeze.clear();
  const fusion::Graph graph = model.graph(plain);
  for (const fusion::Weight& weight : graph.weights) {
    if (weight.tied.empty()) continue;
    impl_->tied.push_back(weight.tied);
    impl_->tied.back().push_back(weight.name);
  }
  if (options.lora && impl_->wrapped)
    fail("found adapters of the config in a model that PEFT wrapped, wanted one of them");
  if (options.lora) impl_->adapters = fusion::own_adapters(graph, *options.lora);
  if (impl_->wrapped) impl_->adapters = fusion::peft_adapters(graph);
  if (impl_->adapters.empty()) fail("found a model without adapters, wanted model.adapters, or one that PEFT wrapped");
  for (const TensorView& tensor : slot) impl_->by_name[tensor.name] = &tensor;
  for (const TensorView& tensor : state.tensors) impl_->by_name[tensor.name] = &tensor;
}

// Tensors of modules that were trained beside the adapters: whole modules, since PEFT keeps copies of modules.
std::vector<TrainedAdapters::Impl::Saved> TrainedAdapters::Impl::saved_modules() const {
  std::vector<Saved> saved;
  if (wrapped) {
    for (const TensorView& one : state.tensors) {
      const PeftName name = fusion::peft_name(one.name);
      if (name.part == PeftName::Part::kSaved) saved.push_back({name.name, name.module, &one});
    }
  }
  std::set<std::string> modules, written;
  for (const Saved& one : saved) written.insert(one.tensor->name);
  for (const Adapter& adapter : adapters) written.insert({adapter.a, adapter.b, adapter.magnitude});
  for (const TensorView& one : slot) {
    if (written.contains(one.name)) continue;
    const std::vector<std::string>& parameters = model.parameters();
    if (std::count(parameters.begin(), parameters.end(), one.name) == 0) {
      fail(
          fmt::format("'{}' changed while the trial was trained, which PEFT's folder has no place for; wanted --format "
                      "merged, or a model whose norms were in evaluation mode when it was exported",
                      printable(one.name)));
    }
    const std::string module = module_of(one.name);
    if (wrapped || module.empty() || is_tied(one.name)) {
      fail(fmt::format("'{}' was trained and is {}, which PEFT's folder has no place for; wanted --format merged",
                       printable(one.name), is_tied(one.name) ? "a tensor of two names" : "of no module to save"));
    }
    modules.insert(module);
  }
  for (const TensorView& one : state.tensors) {
    const std::string module = module_of(one.name);
    if (modules.contains(module)) saved.push_back({one.name, module, &one});
  }
  return saved;
}

json TrainedAdapters::Impl::config(const std::vector<Saved>& saved) const {
  std::set<std::string> targets, modules;
  for (const Adapter& adapter : adapters) targets.insert(adapter.module);
  for (const Saved& one : saved) modules.insert(one.module);
  const bool stabilized = options.lora && options.lora->scale == fusion::LoraScale::kRankStabilized;
  const auto alpha_of = [&](const Adapter& adapter) {
    if (options.lora) return options.lora->alpha;
    return adapter.scale * static_cast<double>(rank_of(adapter));
  };
  const std::int64_t rank = rank_of(adapters.front());
  const double alpha = alpha_of(adapters.front());
  json ranks = json::object(), alphas = json::object();
  for (const Adapter& adapter : adapters) {
    if (rank_of(adapter) != rank) ranks[adapter.module] = rank_of(adapter);
    if (alpha_of(adapter) != alpha) alphas[adapter.module] = number(alpha_of(adapter));
  }
  const auto any = [&](auto is) { return std::any_of(adapters.begin(), adapters.end(), is); };
  return {{"peft_type", "LORA"},
          {"task_type", nullptr},
          {"base_model_name_or_path", nullptr},
          {"inference_mode", true},
          {"r", rank},
          {"lora_alpha", number(alpha)},
          {"lora_dropout", options.lora ? options.lora->dropout.value_or(0) : 0.0},
          {"use_rslora", stabilized},
          {"use_dora", any([](const Adapter& one) { return !one.magnitude.empty(); })},
          {"fan_in_fan_out", any([](const Adapter& one) { return one.kind == LoraKind::kTransposed; })},
          {"bias", "none"},
          {"init_lora_weights", true},
          {"target_modules", targets},
          {"modules_to_save", modules.empty() ? json() : json(modules)},
          {"rank_pattern", ranks},
          {"alpha_pattern", alphas}};
}

std::vector<ExportedFile> TrainedAdapters::peft_folder(const std::map<std::string, std::string>& metadata) const {
  Tensors tensors;
  std::vector<fusion::StoredTensor> held;  // adapters, cut to their rank
  held.reserve(2 * impl_->adapters.size());
  const auto name_in_file = [&](const std::string& name) {
    return std::string(kWrapper) + (impl_->wrapped ? fusion::peft_name(name).name : name);
  };
  const auto add = [&](const std::string& name, const Matrix& matrix, fusion::Shape shape, std::size_t padded) {
    const TensorView& whole = impl_->tensor(name);
    shape.at(padded) = padded == 0 ? matrix.rows : matrix.columns;
    const bool wide = whole.dtype == fusion::safetensors_name(fusion::DType::kFloat64);
    held.push_back(tensor_of(matrix, shape, wide ? fusion::DType::kFloat64 : fusion::DType::kFloat32));
    tensors.push_back({name_in_file(name), fusion::safetensors_name(held.back().dtype), shape, held.back().bytes});
  };
  for (const Adapter& adapter : impl_->adapters) {
    impl_->check_wrappable(adapter);
    add(adapter.a, impl_->a_of(adapter), impl_->tensor(adapter.a).shape, 0);
    add(adapter.b, impl_->b_of(adapter), impl_->tensor(adapter.b).shape, 1);
    if (adapter.magnitude.empty()) continue;
    TensorView magnitude = impl_->tensor(adapter.magnitude);
    magnitude.name = name_in_file(adapter.magnitude);
    tensors.push_back(magnitude);
  }
  const std::vector<Impl::Saved> saved = impl_->saved_modules();
  for (const Impl::Saved& one : saved) {
    TensorView tensor = *one.tensor;
    tensor.name = std::string(kWrapper) + one.file_name;
    tensors.push_back(tensor);
  }
  const std::string config = impl_->config(saved).dump(2) + "\n";
  const auto* text = reinterpret_cast<const std::byte*>(config.data());
  return {{"adapter_config.json", {text, text + config.size()}},
          {"adapter_model.safetensors", fusion::write_safetensors(tensors, metadata)}};
}

// PEFT adapts a module's own call, with zeros for a convolution's padding.
void TrainedAdapters::Impl::check_wrappable(const Adapter& adapter) const {
  if (wrapped) return;
  if (!adapter.called_by.empty()) {
    fail(
        fmt::format("'{}' is not called as a module: {} takes its weight, where PEFT would leave the adapter out; "
                    "wanted --format merged",
                    printable(adapter.module), printable(adapter.called_by)));
  }
  if (adapter.prepares_input) {
    fail(
        fmt::format("'{}' pads its input by itself, as with a padding_mode, which PEFT's adapter does not; wanted "
                    "--format merged",
                    printable(adapter.module)));
  }
}

void TrainedAdapters::Impl::check_mergeable(const Adapter& adapter) const {
  if (adapter.weight.empty()) {
    fail(fmt::format("'{}' has a quantized weight, into which no adapter can be merged; wanted --format peft",
                     printable(adapter.module)));
  }
  if (is_tied(adapter.weight)) {
    fail(
        fmt::format("'{}' is the weight of another layer, too, which a merged adapter would change; wanted --format "
                    "peft",
                    printable(adapter.weight)));
  }
  if (adapter.pads_apart) {
    fail(
        fmt::format("'{}' pads its input by itself, as with a padding_mode, which PEFT's adapter does not, so it is no "
                    "change of its weight; wanted --format peft",
                    printable(adapter.module)));
  }
  if (!adapter.read_by.empty()) {
    fail(fmt::format("'{}' is read by {}, too, which a merged adapter would change; wanted --format peft",
                     printable(adapter.weight), printable(adapter.read_by)));
  }
}

// W + scale * B A, in W's own layout; for DoRA each output's row of it has the length that was learnt
// (arXiv:2402.09353, equation 5).
Matrix TrainedAdapters::Impl::merged_weight(const Adapter& adapter) const {
  const Matrix own = matrix_of(tensor(adapter.weight));
  const Matrix a = a_of(adapter), b = b_of(adapter);
  if (a.rows != b.columns) {  // PEFT's B of a grouped convolution reads some of A's outputs in each group
    fail(fmt::format("'{}' is a grouped convolution, whose adapter is no change of its weight; wanted --format peft",
                     printable(adapter.module)));
  }
  const Matrix delta = product(b, a);
  const bool turned = adapter.kind == LoraKind::kTransposed || adapter.kind == LoraKind::kEmbedding;
  Matrix sum = turned ? transposed(own) : own;
  if (sum.rows != delta.rows || sum.columns != delta.columns) {
    throw Error(ErrorKind::kStorage,
                fmt::format("'{}': found an adapter of [{}, {}], wanted [{}, {}]", printable(adapter.module),
                            delta.rows, delta.columns, sum.rows, sum.columns));
  }
  for (std::size_t i = 0; i < sum.values.size(); ++i) sum.values[i] += adapter.scale * delta.values[i];
  if (!adapter.magnitude.empty()) {
    const Matrix lengths = matrix_of(tensor(adapter.magnitude));
    for (std::int64_t r = 0; r < sum.rows; ++r) {
      double square = 0;
      for (std::int64_t c = 0; c < sum.columns; ++c) square += sum.at(r, c) * sum.at(r, c);
      const double factor = lengths.values.at(static_cast<std::size_t>(r)) / std::sqrt(square);
      for (std::int64_t c = 0; c < sum.columns; ++c) sum.at(r, c) *= factor;
    }
  }
  return turned ? transposed(sum) : sum;
}

std::vector<std::byte> TrainedAdapters::merged(const std::map<std::string, std::string>& metadata) const {
  std::map<std::string, const Adapter*> adapted;
  for (const Adapter& adapter : impl_->adapters) {
    impl_->check_mergeable(adapter);
    adapted[adapter.weight] = &adapter;
  }
  Tensors tensors;
  std::vector<fusion::StoredTensor> held;
  held.reserve(adapted.size());
  for (const TensorView& one : impl_->state.tensors) {
    const PeftName name =
        impl_->wrapped ? fusion::peft_name(one.name) : PeftName{PeftName::Part::kModel, one.name, {}, {}};
    if (name.part == PeftName::Part::kAdapter || name.part == PeftName::Part::kOriginal) continue;
    TensorView tensor = one;
    if (const auto adapter = adapted.find(one.name); adapter != adapted.end()) {
      held.push_back(tensor_of(impl_->merged_weight(*adapter->second), one.shape, impl_->options.dtype));
      tensor.dtype = fusion::safetensors_name(held.back().dtype);
      tensor.bytes = held.back().bytes;
    }
    tensor.name = name.name;
    tensors.push_back(tensor);
  }
  return fusion::write_safetensors(tensors, metadata);
}

}  // namespace hfta::engine
