#pragma once
/// ${name}: where parameters stand in a config, and what a trial's values make of it. Internal to engine/config.

#include <map>
#include <optional>
#include <set>
#include <string>

#include "engine/config/node.hpp"
#include "trials/space.hpp"

namespace hfta::engine::configuration {

/// How the config uses its parameters, judged by where their names stand, never by their values.
struct Uses {
  std::set<std::string> used;
  std::set<std::string> shape_changing;  ///< Parameters whose value changes more than per-slot numbers.
  std::set<std::string> padded;          ///< Parameters that say how much of a trial's tensors is used.
  /// Parameters that say what the loss of evaluation is (Key::of_evaluation), with the path of the first such key.
  std::map<std::string, std::string> of_evaluation;
};

/// Finds every ${name} of a config. Throws Error{kConfig}, with the place, for names that are no parameters (nearest
/// named), for places where none may stand, and for a ${ that is not closed.
[[nodiscard]] Uses find_references(const std::string& file, const Node& root, const trials::Space& space);

/// The values that stand for parameters that do not apply to a trial; nullopt: the config gives none.
using Absent = std::map<std::string, std::optional<trials::ParamValue>>;

/// A trial as ${name} sees it.
struct Substitutes {
  const trials::Params& params;
  Absent absent;
};

/// The tree with every ${name} replaced. A scalar that is nothing but ${name} becomes the value with its type, or null
/// if the parameter does not apply and nothing stands for it; within a longer word the value's text is put in. Throws
/// Error{kConfig} for a parameter that the trial lacks, and within a longer word for one that does not apply.
[[nodiscard]] Node substitute(const std::string& file, const Node& node, const std::string& path,
                              const Substitutes& trial);

}  // namespace hfta::engine::configuration
