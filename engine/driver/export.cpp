#include "engine/driver/export.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "base/error.hpp"
#include "base/text.hpp"
#include "engine/driver/study.hpp"
#include "fusion/data/safetensors.hpp"
#include "fusion/exported.hpp"

namespace hfta::engine {
namespace {

using fusion::TensorView;
using Tensors = std::vector<TensorView>;

// `optimizer.<state>.<weight>`, of a weight that is there: a layer may be called optimizer, too.
void drop_optimizer_state(Tensors& tensors) {
  constexpr std::string_view kPrefix = "optimizer.";
  std::set<std::string> names;
  for (const TensorView& tensor : tensors) names.insert(tensor.name);
  std::erase_if(tensors, [&](const TensorView& tensor) {
    if (!tensor.name.starts_with(kPrefix)) return false;
    const std::size_t dot = tensor.name.find('.', kPrefix.size());
    return dot != std::string::npos && names.contains(tensor.name.substr(dot + 1));
  });
}

std::string kept_text(storage::Checkpoints& finished, const std::vector<trials::Trial>& trials) {
  std::vector<std::string> numbers;
  for (const int number : finished.trials()) {
    const auto trial = std::find_if(trials.begin(), trials.end(), [&](const auto& t) { return t.number == number; });
    // With metric.select best, those that still run have a state here, too.
    if (trial != trials.end() && trial->state == trials::State::kComplete) numbers.push_back(std::to_string(number));
  }
  return numbers.empty() ? "none is kept" : "kept are " + join(numbers);
}

const trials::Trial& chosen(const std::vector<trials::Trial>& trials, const StudyConfig& config, storage::Store& store,
                            std::optional<int> number) {
  if (!number) {
    const trials::Trial* best = best_trial(config, store, trials);
    if (best != nullptr) return *best;
    throw Error(ErrorKind::kConfig,
                fmt::format("study '{}': found no trial that is COMPLETE, wanted one to export", config.study));
  }
  const auto trial = std::find_if(trials.begin(), trials.end(), [&](const auto& t) { return t.number == *number; });
  if (trial != trials.end()) return *trial;
  throw Error(ErrorKind::kConfig, fmt::format("--trial: found {}, wanted a trial of study '{}', 0 to {}", *number,
                                              config.study, trials.empty() ? 0 : trials.back().number));
}

// Whether the trial's value was measured at that epoch: only then is a state what is asked for.
bool gave_value(const trials::Trial& trial, int epoch, const std::string& metric) {
  const auto record =
      std::find_if(trial.epochs.begin(), trial.epochs.end(), [&](const auto& e) { return e.epoch == epoch; });
  if (record == trial.epochs.end() || !trial.value) return false;
  const auto found = record->metrics.find(metric);
  return found != record->metrics.end() && found->second == *trial.value;
}

storage::Checkpoint kept_state(const trials::Trial& trial, const StudyConfig& config, storage::Checkpoints& finished,
                               const std::vector<trials::Trial>& trials) {
  std::optional<storage::Checkpoint> found;
  if (trial.state == trials::State::kComplete) found = finished.load(trial.number);
  if (!found) {
    throw Error(
        ErrorKind::kConfig,
        fmt::format("study '{}': found no weights of trial {} ({}), wanted one of the best {} finished trials: {}",
                    config.study, trial.number, trials::name_of(trial.state), std::max(config.keep, 1),
                    kept_text(finished, trials)));
  }
  if (gave_value(trial, found->epoch, config.metric)) return std::move(*found);
  throw Error(
      ErrorKind::kStorage,
      fmt::format("study '{}': trial {}: found weights of epoch {}, wanted those of the epoch that its value was "
                  "measured at: the newer file is damaged or gone",
                  config.study, trial.number, found->epoch));
}

fusion::ExportedModel read_model(const ModelFile& file, const StudyConfig& config, storage::Store& store) {
  fusion::ExportedModel model = fusion::ExportedModel::read(file.file);
  const auto known = model_fingerprints(store.find(config.study).value());
  const auto trained = known.find(file.name);
  if (trained == known.end() || trained->second == model.fingerprint()) return model;
  throw Error(ErrorKind::kConfig,
              fmt::format("{}: found another model (fingerprint {}) than study '{}' trained ({}), wanted that one for "
                          "what its trials share",
                          printable(file.file.string()), model.fingerprint(), config.study, trained->second));
}

template <typename To, typename From>
fusion::StoredTensor cast(const fusion::StoredTensor& tensor, fusion::DType dtype) {
  fusion::StoredTensor out{tensor.shape, dtype, {}};
  out.bytes.resize(tensor.bytes.size() / sizeof(From) * sizeof(To));
  for (std::size_t i = 0; i < tensor.bytes.size() / sizeof(From); ++i) {
    From from;
    std::memcpy(&from, tensor.bytes.data() + i * sizeof(From), sizeof(From));
    const To to = static_cast<To>(from);
    std::memcpy(out.bytes.data() + i * sizeof(To), &to, sizeof(To));
  }
  return out;
}

// What was trained in float64 is float64 throughout, and the other way round. Complex numbers are complex64:
// safetensors has no others.
std::shared_ptr<const fusion::StoredTensor> in_dtype(const std::shared_ptr<const fusion::StoredTensor>& tensor,
                                                     fusion::DType dtype) {
  using fusion::DType;
  if (tensor->dtype == DType::kComplex128) {
    return std::make_shared<const fusion::StoredTensor>(cast<float, double>(*tensor, DType::kComplex64));
  }
  if (tensor->dtype == DType::kFloat32 && dtype == DType::kFloat64) {
    return std::make_shared<const fusion::StoredTensor>(cast<double, float>(*tensor, dtype));
  }
  if (tensor->dtype == DType::kFloat64 && dtype == DType::kFloat32) {
    return std::make_shared<const fusion::StoredTensor>(cast<float, double>(*tensor, dtype));
  }
  return tensor;
}

// What the slot has as pairs, as the complex tensor that the model has.
std::shared_ptr<const fusion::StoredTensor> joined_pairs(const TensorView& pairs) {
  fusion::StoredTensor tensor{pairs.shape, fusion::DType::kComplex64, {pairs.bytes.begin(), pairs.bytes.end()}};
  if (pairs.shape.empty() || pairs.shape.back() != 2) {
    throw Error(ErrorKind::kStorage, fmt::format("slot state: {}: found no pairs of numbers", pairs.name));
  }
  tensor.shape.pop_back();
  if (pairs.dtype != fusion::safetensors_name(fusion::DType::kFloat64)) {
    return std::make_shared<const fusion::StoredTensor>(std::move(tensor));
  }
  return std::make_shared<const fusion::StoredTensor>(cast<float, double>(tensor, fusion::DType::kComplex64));
}

// A state dict whose tensors may be its own.
struct State {
  Tensors tensors;
  std::vector<std::shared_ptr<const fusion::StoredTensor>> held;
};

// In the model's own order: what the slot has, under every name, else what the file has.
State state_of(const fusion::ExportedModel& model, const fusion::ImportOptions& options, const Tensors& slot) {
  // Names are asked of the graph, not numbers: neither what is bound, in this graph or in evaluation's, nor first
  // values.
  fusion::ImportOptions named;
  named.dtype = options.dtype;
  named.output = options.output;
  named.own_loss = options.own_loss;
  const fusion::Graph graph = model.graph(named);
  std::map<std::string, const TensorView*> trained;
  for (const TensorView& tensor : slot) trained[tensor.name] = &tensor;
  for (const fusion::Weight& weight : graph.weights) {
    const auto own = trained.find(weight.name);
    if (own == trained.end()) continue;
    for (const std::string& name : weight.tied) trained[name] = own->second;
  }
  State state;
  for (const fusion::StateEntry& entry : model.state()) {
    const auto own = trained.find(entry.name);
    if (own != trained.end() && !fusion::is_complex(entry.value->dtype)) {
      state.tensors.push_back({entry.name, own->second->dtype, own->second->shape, own->second->bytes});
    } else {
      const fusion::StoredTensor& shared = *state.held.emplace_back(
          own != trained.end() ? joined_pairs(*own->second) : in_dtype(entry.value, options.dtype));
      state.tensors.push_back({entry.name, safetensors_name(shared.dtype), shared.shape, shared.bytes});
    }
  }
  return state;
}

}  // namespace

std::vector<std::byte> export_weights(const StudyConfig& config, storage::Store& store, storage::Checkpoints& finished,
                                      std::optional<int> number) {
  const std::vector<trials::Trial> trials = store.trials(config.study);
  const trials::Trial& trial = chosen(trials, config, store, number);
  const storage::Checkpoint state = kept_state(trial, config, finished, trials);
  Tensors tensors = fusion::parse_safetensors(state.bytes).tensors;
  drop_optimizer_state(tensors);
  const std::map<std::string, std::string> metadata = {{"format", "pt"},
                                                       {"study", config.study},
                                                       {"trial", std::to_string(trial.number)},
                                                       {"epoch", std::to_string(state.epoch)},
                                                       {config.metric, shortest(*trial.value)}};
  const std::optional<ModelFile> file = config.task(trials::latest_params(trial)).model_file;
  if (!file) return fusion::write_safetensors(tensors, metadata);
  const fusion::ExportedModel model = read_model(*file, config, store);
  return fusion::write_safetensors(state_of(model, file->import, tensors).tensors, metadata);
}

}  // namespace hfta::engine
