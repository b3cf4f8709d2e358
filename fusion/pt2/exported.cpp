#include "fusion/exported.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "base/error.hpp"
#include "base/hash.hpp"
#include "base/text.hpp"
#include "fusion/graph/names.hpp"
#include "fusion/pt2/archive.hpp"
#include "fusion/pt2/batch.hpp"
#include "fusion/pt2/evaluation.hpp"
#include "fusion/pt2/options.hpp"
#include "fusion/pt2/parameters.hpp"
#include "fusion/pt2/translate.hpp"
#include "fusion/pt2/version.hpp"
#include "fusion/pt2/warnings.hpp"
#include "fusion/verify.hpp"

namespace hfta::fusion {

struct ExportedModel::Impl {
  static std::unique_ptr<Impl> from(const pt2::Archive& archive);

  std::string name;  ///< The file's.
  std::string torch_version;
  std::string fingerprint;
  std::vector<std::string> warnings;
  std::vector<ExportedTensor> inputs;
  pt2::Parameters parameters;
  pt2::Translation translation;

  /// The graph with those outputs.
  [[nodiscard]] Graph graph_of(const std::vector<std::size_t>& outputs) const;
};

namespace {

// The directory's checksums stand for the weights.
std::string fingerprint_of(const pt2::Archive& archive, std::span<const std::byte> model) {
  Fnv1a hash;
  hash.add(model);
  for (const std::string& member : archive.members()) {
    if (!member.starts_with("data/weights/") && !member.starts_with("data/constants/")) continue;
    hash.add(fmt::format("{} {} {:08x}\n", member, archive.size_of(member), archive.checksum_of(member)));
  }
  return fmt::format("{:016x}", hash.value());
}

void verify_at(const Graph& graph, const std::string& place) {
  try {
    verify(graph);
  } catch (const Error& error) {
    throw Error(error.kind(), place + ": " + error.what());
  }
}

std::vector<std::string> output_names(const std::vector<ExportedTensor>& outputs) {
  std::vector<std::string> names;
  names.reserve(outputs.size());
  for (const ExportedTensor& output : outputs) names.push_back(output.name);
  return names;
}

std::size_t position_of(const std::string& name, const std::vector<ExportedTensor>& outputs,
                        const ImportOptions& options) {
  const auto is_it = [&](const ExportedTensor& output) { return output.name == name; };
  const auto found = std::find_if(outputs.begin(), outputs.end(), is_it);
  if (found != outputs.end()) return static_cast<std::size_t>(found - outputs.begin());
  pt2::fail(options.where, fmt::format("the model has no output '{}'{}", name, hint(name, output_names(outputs))));
}

// None and numbers have positions, too, but are no outputs.
std::size_t output_at(std::int64_t position, const std::vector<ExportedTensor>& outputs, const ImportOptions& options) {
  std::vector<std::size_t> found;
  std::vector<std::string> names, all;
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    all.push_back(fmt::format("{} ({})", outputs[i].position, printable(outputs[i].name)));
    if (position < 0 || outputs[i].position != static_cast<std::size_t>(position)) continue;
    found.push_back(i);
    names.push_back(printable(outputs[i].name));
  }
  if (found.size() == 1) return found[0];
  pt2::fail(options.where, found.empty()
                               ? fmt::format("found output {}, wanted one of {}", position, join(all))
                               : fmt::format("found output {}, which holds several, wanted the name of one: {}",
                                             position, join(names)));
}

std::size_t named_output(const std::vector<ExportedTensor>& outputs, const ImportOptions& options) {
  if (const auto* position = std::get_if<std::int64_t>(&options.output)) return output_at(*position, outputs, options);
  const auto* name = std::get_if<std::string>(&options.output);
  return name == nullptr ? 0 : position_of(*name, outputs, options);
}

bool has_batch(const ExportedTensor& output) { return !output.shape.empty() && output.shape[0] < 0; }

std::size_t chosen_output(const std::vector<ExportedTensor>& outputs, const ImportOptions& options) {
  const std::size_t chosen = named_output(outputs, options);
  if (options.own_loss || has_batch(outputs[chosen])) return chosen;
  std::vector<std::string> others;
  for (const ExportedTensor& output : outputs) {
    if (has_batch(output)) others.push_back(fmt::format("{} {}", printable(output.name), to_text(output.shape)));
  }
  const std::string meant =
      others.empty()
          ? ""
          : fmt::format("; train: {{loss: {{name: ..., output: NAME}}}} takes one that has: {}", join(others));
  pt2::fail(options.where, fmt::format("output '{}' has the shape {}, wanted the batch as its first dimension{}",
                                       printable(outputs[chosen].name), to_text(outputs[chosen].shape), meant));
}

// Graph::outputs.
std::vector<std::size_t> chosen_outputs(const std::vector<ExportedTensor>& outputs, const ImportOptions& options) {
  std::vector<std::size_t> chosen = {chosen_output(outputs, options)};
  for (const std::string& name : options.further) chosen.push_back(position_of(name, outputs, options));
  return chosen;
}

// The outputs of the same names; a model that gives several while it trains may give one alone in evaluation.
std::vector<std::size_t> same_outputs(const std::vector<std::size_t>& chosen,
                                      const std::vector<ExportedTensor>& outputs,
                                      const std::vector<ExportedTensor>& others, const std::string& file,
                                      const ImportOptions& options) {
  std::vector<std::size_t> same;
  for (const std::size_t output : chosen) {
    const std::string& wanted = outputs[output].name;
    const auto found =
        std::find_if(others.begin(), others.end(), [&](const ExportedTensor& other) { return other.name == wanted; });
    if (found == others.end() && (others.size() > 1 || chosen.size() > 1)) {
      pt2::fail(options.where,
                fmt::format("{} has no output '{}'{}", file, wanted, hint(wanted, output_names(others))));
    }
    same.push_back(found == others.end() ? 0 : static_cast<std::size_t>(found - others.begin()));
  }
  return same;
}

ImportOptions with_places(ImportOptions options, const std::string& file) {
  if (options.where.empty()) options.where = file;
  for (Binding& binding : options.bind) {
    if (binding.where.empty()) binding.where = options.where;
  }
  if (options.lora && options.lora->where.empty()) options.lora->where = options.where;
  return options;
}

}  // namespace

Graph ExportedModel::Impl::graph_of(const std::vector<std::size_t>& outputs) const {
  Graph graph = translation.graph;
  graph.outputs.clear();
  for (const std::size_t output : outputs) graph.outputs.push_back(translation.output_values[output]);
  return graph;
}

// The JSON, and all that hangs on it, are gone when this returns.
std::unique_ptr<ExportedModel::Impl> ExportedModel::Impl::from(const pt2::Archive& archive) {
  auto impl = std::make_unique<Impl>();
  impl->name = archive.name();
  const std::string model = pt2::model_name(archive);
  const std::string member = fmt::format("models/{}.json", model);
  const std::vector<std::byte> text = archive.read(member);
  impl->fingerprint = fingerprint_of(archive, text);
  const pt2::Json json = pt2::parse_json(text, archive.name() + ": " + member);
  const pt2::Reader program(json, archive.name());
  impl->torch_version = pt2::check_schema(program);
  const pt2::Signature signature = pt2::signature_from(program);
  const pt2::Batch batch = pt2::batch_from(signature, program);
  const auto weights = pt2::read_weights(archive, fmt::format("data/weights/{}_weights_config.json", model));
  const auto constants = pt2::read_weights(archive, fmt::format("data/constants/{}_constants_config.json", model));
  pt2::Parameters parameters = pt2::parameters_from(signature, weights, constants, archive.name());
  impl->translation = pt2::translate(program, signature, parameters, batch);
  verify_at(impl->translation.graph, archive.name());
  impl->inputs = batch.inputs;
  impl->warnings = pt2::warnings_of(impl->translation);
  impl->parameters = std::move(parameters);
  return impl;
}

ExportedModel::ExportedModel(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
ExportedModel::ExportedModel(ExportedModel&&) noexcept = default;
ExportedModel& ExportedModel::operator=(ExportedModel&&) noexcept = default;
ExportedModel::~ExportedModel() = default;

ExportedModel ExportedModel::read(const std::filesystem::path& file) {
  return ExportedModel(Impl::from(pt2::Archive::open(file)));
}

ExportedModel ExportedModel::parse(std::span<const std::byte> archive, const std::string& name) {
  return ExportedModel(Impl::from(pt2::Archive::view(archive, name)));
}

const std::vector<ExportedTensor>& ExportedModel::inputs() const { return impl_->inputs; }
const std::vector<ExportedTensor>& ExportedModel::outputs() const { return impl_->translation.outputs; }
const std::string& ExportedModel::torch_version() const { return impl_->torch_version; }
const std::vector<std::string>& ExportedModel::warnings() const { return impl_->warnings; }
const std::string& ExportedModel::fingerprint() const { return impl_->fingerprint; }
const std::vector<StateEntry>& ExportedModel::state() const { return impl_->parameters.state; }
const std::vector<std::string>& ExportedModel::parameters() const { return impl_->parameters.names; }

void ExportedModel::share_values(const ExportedModel& other) {
  using Shared = std::shared_ptr<const StoredTensor>;
  std::map<std::string, Shared> theirs;
  for (const StateEntry& entry : other.state()) theirs.try_emplace(entry.name, entry.value);
  const auto share = [&](const std::string& name, Shared& own) {
    const auto found = theirs.find(name);
    if (own == nullptr || found == theirs.end() || found->second == own) return;
    const StoredTensor &a = *own, &b = *found->second;
    if (a.shape == b.shape && a.dtype == b.dtype && a.bytes == b.bytes) own = found->second;
  };
  for (StateEntry& entry : impl_->parameters.state) share(entry.name, entry.value);
  for (Weight& weight : impl_->parameters.weights) share(weight.name, weight.stored);
  for (Weight& weight : impl_->translation.graph.weights) share(weight.name, weight.stored);
}

std::optional<std::int64_t> ExportedModel::fixed_batch() const {
  const std::int64_t fixed = impl_->translation.graph.fixed_batch;
  return fixed > 0 ? std::optional(fixed) : std::nullopt;
}

std::vector<double> hypers_of(const ImportOptions& options) {
  std::vector<double> values;
  for (const Binding& binding : options.bind) values.push_back(binding.value);
  if (!options.lora) return values;
  for (const Hyper& hyper : lora_hypers(*options.lora)) values.push_back(hyper.value);
  return values;
}

Graph ExportedModel::graph(const ImportOptions& given) const {
  const ImportOptions options = with_places(given, impl_->name);
  Graph graph = impl_->graph_of(chosen_outputs(outputs(), options));
  if (options.lora) freeze_base(graph, *options.lora, parameters(), options.freeze);
  pt2::freeze(graph, options.freeze, parameters(), options.where);
  pt2::bind(graph, nullptr, options.bind);
  pt2::set_start(graph, options, impl_->translation.classes);
  if (options.lora) insert_lora(graph, *options.lora);
  pt2::set_dtype(graph, impl_->parameters.dtype, options.dtype);
  pt2::keep_narrow(graph, nullptr);
  return graph;
}

Graph ExportedModel::graph(const ImportOptions& given, const ExportedModel& other) const {
  const ImportOptions options = with_places(given, impl_->name);
  const std::vector<std::size_t> chosen = chosen_outputs(outputs(), options);
  Graph graph = impl_->graph_of(chosen);
  Graph evaluation =
      other.impl_->graph_of(same_outputs(chosen, outputs(), other.outputs(), other.impl_->name, options));
  if (options.lora) freeze_base(graph, *options.lora, parameters(), options.freeze);
  pt2::freeze(graph, options.freeze, parameters(), options.where);
  pt2::bind(graph, &evaluation, options.bind);
  pt2::set_start(graph, options, impl_->translation.classes);
  pt2::attach_evaluation(graph, {impl_->name, impl_->parameters}, std::move(evaluation),
                         {other.impl_->name, other.impl_->parameters}, options.where);
  if (options.lora) insert_lora(graph, *options.lora);
  Graph own = *graph.evaluation;
  pt2::set_dtype(own, impl_->parameters.dtype, options.dtype);
  pt2::set_dtype(graph, impl_->parameters.dtype, options.dtype);
  pt2::keep_narrow(graph, &own);
  graph.evaluation = std::make_shared<const Graph>(std::move(own));
  return graph;
}

}  // namespace hfta::fusion
