#pragma once
/// The exported models of a study, each read once.

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "engine/config.hpp"
#include "engine/trainer.hpp"
#include "fusion/exported.hpp"

namespace hfta::engine {

class ModelFiles {
 public:
  /// Throws Error{kConfig} with the place where the config names the file.
  [[nodiscard]] const fusion::ExportedModel& read(const ModelFile& model) { return entry(model).model; }
  /// The graph of a trial, its own numbers bound and with the evaluation that the config names; made once for all
  /// trials that differ in those numbers alone. Throws as ExportedModel::graph.
  [[nodiscard]] fusion::Graph graph(const ModelFile& model);
  [[nodiscard]] const ModelFacts& facts(const ModelFile& model) { return entry(model).facts; }
  [[nodiscard]] const ModelFacts& evaluation_facts(const ModelFile& model) { return evaluation_entry(model).facts; }
  /// Adds a note to the file's, once.
  void note(const ModelFile& model, const std::string& text);
  /// Facts of all model files that were read, in that order.
  [[nodiscard]] std::vector<ModelFacts> all() const;

 private:
  struct Entry {
    fusion::ExportedModel model;
    ModelFacts facts;
    std::map<std::string, fusion::Graph> graphs;  ///< Keyed by all of a ModelFile but the bound numbers.
    bool trained = false;                         ///< The model is trained, not only evaluated: its notes are told.
  };
  [[nodiscard]] Entry& entry(const ModelFile& model);
  [[nodiscard]] Entry& evaluation_entry(const ModelFile& model);
  [[nodiscard]] Entry& entry(const std::string& name, const std::filesystem::path& file, const std::string& place);
  [[nodiscard]] fusion::Graph graph_of(const ModelFile& model, const Entry& trained);

  std::vector<std::unique_ptr<Entry>> entries_;
};

}  // namespace hfta::engine
