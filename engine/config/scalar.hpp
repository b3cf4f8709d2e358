#pragma once
/// The meaning of an unquoted word of a config: YAML 1.2's core schema. Internal to engine/config.

#include <string_view>

#include "trials/trial.hpp"

namespace hfta::engine::configuration {

struct Resolved {
  trials::ParamValue value;
  bool out_of_range = false;  ///< A number, but none that a double holds; `value` is then the word itself.
};

/// null, Null, NULL, ~ and nothing are null; true and false (also True, TRUE, ...) booleans; 12, 0x1f, 0o17 integers;
/// 1e-4, .5, 1., .inf, .nan numbers (an integer beyond 64 bits is a number too); all else is a word: y, no, on, 1_000.
/// Independent of the locale.
[[nodiscard]] Resolved resolve(std::string_view plain);

}  // namespace hfta::engine::configuration
