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
  /// The graph of a trial, its own numbers bound; made once for all trials that differ in those alone. Throws as
  /// ExportedModel::graph.
  [[nodiscard]] fusion::Graph graph(const ModelFile& model);
  [[nodiscard]] const ModelFacts& facts(const ModelFile& model) { return entry(model).facts; }
  /// Adds a note to the file's, once.
  void note(const ModelFile& model, const std::string& text);
  /// Of all that were read, in that order.
  [[nodiscard]] std::vector<ModelFacts> all() const;

 private:
  struct Entry {
    fusion::ExportedModel model;
    ModelFacts facts;
    std::map<std::string, fusion::Graph> graphs;  ///< By all of ImportOptions but the bound numbers.
  };
  [[nodiscard]] Entry& entry(const ModelFile& model);

  std::vector<std::unique_ptr<Entry>> entries_;
};

}  // namespace hfta::engine
