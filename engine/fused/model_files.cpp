#include "engine/fused/model_files.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/error.hpp"
#include "base/text.hpp"
#include "fusion/modes.hpp"

namespace hfta::engine {
namespace {

fusion::ExportedModel read_at(const std::filesystem::path& file, const std::string& place) {
  try {
    return fusion::ExportedModel::read(file);
  } catch (const Error& error) {
    throw Error(error.kind(), fmt::format("{}: {}", place, error.what()));
  }
}

ModelFacts facts_of(const std::string& name, const fusion::ExportedModel& model) {
  ModelFacts facts;
  facts.file = name;
  facts.fingerprint = model.fingerprint();
  facts.torch_version = model.torch_version();
  for (const fusion::ExportedTensor& input : model.inputs()) {
    facts.inputs.push_back(
        fmt::format("{}: {} {}", printable(input.name), name_of(input.dtype), fusion::to_text(input.shape)));
  }
  facts.fixed_batch = model.fixed_batch().value_or(0);
  return facts;
}

// A key of everything in adapters that changes the graph, beside its hypers' values.
std::string key_of(const fusion::Lora& lora) {
  std::string key = fmt::format("\nlora {} {}", lora.largest_rank, lora.dropout ? "drops" : "");
  for (const std::string& target : lora.targets) key += "\ntarget " + target;
  for (const std::string& pattern : lora.train) key += "\ntrain " + pattern;
  return key;
}

// Parts of the key are separated by what no name of a Python module has.
std::string key_of(const ModelFile& model) {
  const fusion::ImportOptions& options = model.import;
  std::string key = fmt::format("{}\n{}\n{}\n{}", name_of(options.dtype), options.fresh, shortest(options.jitter),
                                options.output.index());
  if (const auto* index = std::get_if<std::int64_t>(&options.output)) key += std::to_string(*index);
  if (const auto* name = std::get_if<std::string>(&options.output)) key += *name;
  if (options.own_loss) key += "\nloss";
  for (const std::string& output : options.further) key += "\noutput " + output;
  for (const std::string& pattern : options.freeze) key += "\nfreeze " + pattern;
  for (const fusion::Binding& binding : options.bind) key += "\nbind " + binding.path;
  if (options.lora) key += key_of(*options.lora);
  key += "\nevaluation " + model.evaluation_name;
  return key;
}

}  // namespace

fusion::Graph ModelFiles::graph(const ModelFile& model) {
  Entry& e = entry(model);
  const std::string key = key_of(model);
  auto known = e.graphs.find(key);
  if (known == e.graphs.end()) known = e.graphs.emplace(key, graph_of(model, e)).first;
  fusion::Graph graph = known->second;
  const std::vector<double> hypers = fusion::hypers_of(model.import);
  for (std::size_t i = 0; i < graph.hypers.size(); ++i) graph.hypers[i].value = hypers.at(i);
  return graph;
}

// If evaluation's file is the same export as the model's, its graph is taken, if that says what evaluation computes.
fusion::Graph ModelFiles::graph_of(const ModelFile& model, const Entry& trained) {
  if (model.evaluation_name.empty()) return trained.model.graph(model.import);
  fusion::ExportedModel& evaluation = evaluation_entry(model).model;
  evaluation.share_values(trained.model);
  if (evaluation.fingerprint() == trained.model.fingerprint()) {
    fusion::Graph graph = trained.model.graph(model.import);
    if (fusion::doubt_of_evaluation(graph).empty()) return graph;
  }
  return trained.model.graph(model.import, evaluation);
}

ModelFiles::Entry& ModelFiles::entry(const ModelFile& model) {
  Entry& found = entry(model.name, model.file, model.import.where + ".file");
  if (!found.trained) {
    found.trained = true;
    for (const std::string& warning : found.model.warnings()) {
      found.facts.notes.push_back(printable(model.name) + ": " + warning);
    }
  }
  return found;
}

ModelFiles::Entry& ModelFiles::evaluation_entry(const ModelFile& model) {
  return entry(model.evaluation_name, model.evaluation_file, model.import.where + ".evaluation");
}

ModelFiles::Entry& ModelFiles::entry(const std::string& name, const std::filesystem::path& file,
                                     const std::string& place) {
  const auto known =
      std::find_if(entries_.begin(), entries_.end(), [&](const auto& e) { return e->facts.file == name; });
  if (known != entries_.end()) return **known;
  FileStamps stamps = {{file, stamp_of(file)}};
  fusion::ExportedModel read = read_at(file, place);
  ModelFacts facts = facts_of(name, read);
  facts.stamps = std::move(stamps);
  return *entries_.emplace_back(std::make_unique<Entry>(Entry{std::move(read), std::move(facts), {}}));
}

void ModelFiles::note(const ModelFile& model, const std::string& text) {
  std::vector<std::string>& notes = entry(model).facts.notes;
  const std::string line = printable(model.name) + ": " + text;
  if (std::count(notes.begin(), notes.end(), line) == 0) notes.push_back(line);
}

std::vector<ModelFacts> ModelFiles::all() const {
  std::vector<ModelFacts> all;
  for (const auto& entry : entries_) all.push_back(entry->facts);
  return all;
}

}  // namespace hfta::engine
