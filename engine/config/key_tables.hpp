#pragma once
/// The parts of the table of keys, in the order of the reference page. Internal to engine/config.

#include <string_view>
#include <vector>

#include "engine/config/keys.hpp"

namespace hfta::engine::configuration {

/// A double holds every integer up to this one.
inline constexpr double kMostInteger = 0x1p53;
inline constexpr double kMostCount = 1e9;

/// A key of an optimizer that has several of its numbers at once, as a list.
struct HyperList {
  const char* name;
  std::vector<std::string_view> of;  ///< Names of fusion::hyper_fields() with equal bounds, one behind another there.
  const char* fallback;              ///< The numbers' defaults, in words.
  const char* wanted;
  const char* sentence;
};
/// The list that has a number; nullptr if none has.
[[nodiscard]] const HyperList* list_with(std::string_view hyper);

[[nodiscard]] std::vector<Key> top_keys();
/// `method`, and a section for each method that has keys of its own. Among top_keys().
[[nodiscard]] std::vector<Key> method_keys();
[[nodiscard]] std::vector<Key> stopping_keys();
[[nodiscard]] std::vector<Key> budget_keys();
/// `repeat`, `folds` and `rank`. Among top_keys().
[[nodiscard]] std::vector<Key> repetition_keys();
[[nodiscard]] std::vector<Key> fold_keys();
[[nodiscard]] std::vector<Key> parameter_keys();
[[nodiscard]] std::vector<Key> model_keys();
[[nodiscard]] std::vector<Key> data_keys();
[[nodiscard]] std::vector<Key> adapter_keys();
[[nodiscard]] std::vector<Key> train_keys();
[[nodiscard]] std::vector<Key> loss_keys();
[[nodiscard]] std::vector<Key> optimizer_keys();
[[nodiscard]] std::vector<Key> phase_keys();
[[nodiscard]] std::vector<Key> schedule_keys();
[[nodiscard]] std::vector<Key> array_keys();
[[nodiscard]] std::vector<Key> memory_keys();

}  // namespace hfta::engine::configuration
