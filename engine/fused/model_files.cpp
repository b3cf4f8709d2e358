#include "engine/fused/model_files.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/error.hpp"
#include "base/text.hpp"

namespace hfta::engine {
namespace {

fusion::ExportedModel read_at(const ModelFile& model) {
  try {
    return fusion::ExportedModel::read(model.file);
  } catch (const Error& error) {
    throw Error(error.kind(), fmt::format("{}.file: {}", model.import.where, error.what()));
  }
}

ModelFacts facts_of(const ModelFile& file, const fusion::ExportedModel& model) {
  ModelFacts facts;
  facts.file = file.name;
  facts.fingerprint = model.fingerprint();
  facts.torch_version = model.torch_version();
  for (const fusion::ExportedTensor& input : model.inputs()) {
    facts.inputs.push_back(
        fmt::format("{}: {} {}", printable(input.name), name_of(input.dtype), fusion::to_text(input.shape)));
  }
  facts.fixed_batch = model.fixed_batch().value_or(0);
  for (const std::string& warning : model.warnings()) facts.notes.push_back(printable(file.name) + ": " + warning);
  return facts;
}

// A separator that stands in no name of a Python module.
std::string key_of(const fusion::ImportOptions& options) {
  std::string key = fmt::format("{}\n{}\n{}", name_of(options.dtype), options.fresh, options.output.index());
  if (const auto* index = std::get_if<std::int64_t>(&options.output)) key += std::to_string(*index);
  if (const auto* name = std::get_if<std::string>(&options.output)) key += *name;
  for (const std::string& pattern : options.freeze) key += "\nfreeze " + pattern;
  for (const fusion::Binding& binding : options.bind) key += "\nbind " + binding.path;
  return key;
}

}  // namespace

fusion::Graph ModelFiles::graph(const ModelFile& model) {
  Entry& e = entry(model);
  const std::string key = key_of(model.import);
  auto known = e.graphs.find(key);
  if (known == e.graphs.end()) known = e.graphs.emplace(key, e.model.graph(model.import)).first;
  fusion::Graph graph = known->second;
  for (std::size_t i = 0; i < graph.hypers.size(); ++i) graph.hypers[i].value = model.import.bind.at(i).value;
  return graph;
}

ModelFiles::Entry& ModelFiles::entry(const ModelFile& model) {
  const auto known =
      std::find_if(entries_.begin(), entries_.end(), [&](const auto& e) { return e->facts.file == model.name; });
  if (known != entries_.end()) return **known;
  fusion::ExportedModel read = read_at(model);
  ModelFacts facts = facts_of(model, read);
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
