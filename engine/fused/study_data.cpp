#include "engine/fused/study_data.hpp"

#include <c10/core/Device.h>
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <utility>

#include "base/error.hpp"
#include "base/hash.hpp"
#include "base/text.hpp"
#include "fusion/data/range.hpp"
#include "fusion/features.hpp"
#include "fusion/gpu.hpp"

namespace hfta::engine {
namespace {

// `types`: the types that the numbers are read as.
DataFacts facts_of(const fusion::DataSource& source, const std::string& types, const std::filesystem::path& folder) {
  Fnv1a reading;
  reading.add(fusion::reading_of(source, folder) + types);
  const std::filesystem::path& train = source.train;
  const std::filesystem::path file = train.has_filename() ? train.filename() : train.parent_path().filename();
  return {source.name.empty() ? file.string() : source.name, fmt::format("{:016x}", reading.value()), "",
          stamps_of(source)};
}

fusion::TargetForm targets_of(const fusion::Recipe& recipe) {
  switch (fusion::info_of(recipe.loss).targets) {
    case fusion::Targets::kNone:
      return fusion::kNoTargets;
    case fusion::Targets::kClasses:
      return {fusion::TargetForm::Kind::kClasses, recipe.loss_options.ignore_index};
    default:
      return fusion::kNumberTargets;
  }
}

// Bytes of features that are kept: as the config says, or a quarter of the memory.
std::int64_t feature_budget(const TrainerOptions& options) {
  if (options.config.cache) return *options.config.cache / options.sharers;
  return fusion::device_memory(c10::Device(c10::kCPU)) / 4 / options.sharers;
}

}  // namespace

StudyData::StudyData(const TrainerSetup& setup, FrozenLayers& frozen)
    : setup_(setup), frozen_(frozen), features_(feature_budget(setup.options()), setup.threads()) {}

const fusion::Splits& StudyData::splits(const TaskSpec& spec, const std::vector<fusion::DType>& inputs) {
  return load(spec, inputs).host;
}

StudyData::LoadedData& StudyData::load(const TaskSpec& spec, const std::vector<fusion::DType>& inputs) {
  const fusion::TargetForm targets = targets_of(spec.recipe);
  std::string types =
      fmt::format("|{}|{} {}", name_of(spec.recipe.dtype), static_cast<int>(targets.kind), targets.ignored);
  for (const fusion::DType dtype : inputs) types += std::string("|") + name_of(dtype);
  const std::string key = fusion::identity_of(spec.data) + types;
  const auto known = data_.find(key);
  if (known != data_.end()) return known->second;
  LoadedData data;
  DataFacts facts = facts_of(spec.data, types, setup_.config().folder);
  data.host = fusion::load_data(spec.data, targets, setup_.config().seed, setup_.options().data_root, inputs);
  fusion::check_range(data.host, spec.data, inputs, spec.recipe.dtype);
  facts.fingerprint = data.host.fingerprint;
  check_unchanged(facts);
  facts_.push_back(std::move(facts));
  return data_.emplace(key, std::move(data)).first->second;
}

// Files that were written between two arrays are read anew: they must have the numbers that trials were trained with.
void StudyData::check_unchanged(const DataFacts& now) const {
  for (const DataFacts& before : facts_) {
    if (before.file != now.file || before.reading != now.reading || before.fingerprint == now.fingerprint) continue;
    throw Error(ErrorKind::kConfig,
                fmt::format("{}: data: found other numbers in {} or the validation or test data (fingerprint {}) than "
                            "this run began with ({}); with those it goes on",
                            setup_.config().file.string(), printable(now.file), now.fingerprint, before.fingerprint));
  }
}

const TaskData& StudyData::on_device(const PreparedTask& task) {
  LoadedData& data = load(task.spec, task.input_types);
  if (data.device) return *data.device;
  const auto moved = [&](const fusion::Dataset& part) {
    return fusion::to_device(part, task.graph, task.spec.recipe, setup_.device());
  };
  TaskData all{moved(data.host.train), {}, {}};
  if (data.host.validation) all.validation = moved(*data.host.validation);
  if (data.host.test) all.test = moved(*data.host.test);
  return data.device.emplace(std::move(all));
}

const TaskData& StudyData::trained(const PreparedTask& task) {
  const TaskData& whole = on_device(task);
  const std::shared_ptr<const fusion::SplitModel>& split = frozen_.prefix(task).split;
  return split == nullptr ? whole : features_.rest_of(whole, split);
}

std::optional<FeaturePlan> StudyData::feature_plan(const PreparedTask& task) {
  const fusion::FrozenPrefix& prefix = frozen_.prefix(task);
  if (prefix.split == nullptr && prefix.prevented.empty()) return std::nullopt;
  FeaturePlan plan;
  plan.prevented = prefix.prevented;
  if (prefix.split == nullptr) return plan;
  const fusion::Splits& sets = splits(task);
  plan.shared = true;
  plan.samples = sets.train.size + (sets.validation ? sets.validation->size : 0) + (sets.test ? sets.test->size : 0);
  plan.bytes_per_sample = prefix.split->bytes_per_sample;
  plan.budget = features_.budget();
  plan.kept_bytes = std::min(plan.budget, fusion::kept_bytes(*prefix.split, plan.samples));
  for (const fusion::Weight& weight : prefix.split->prefix.weights) {
    plan.weight_bytes += fusion::size_of(weight.dtype) * fusion::elements_of(weight.shape, 1);
  }
  return plan;
}

}  // namespace hfta::engine
