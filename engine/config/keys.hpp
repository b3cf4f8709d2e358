#pragma once
/// The one table of a config's keys: it drives reading, checking, messages and docs/config.md. Internal to
/// engine/config.

#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hfta::engine::configuration {

enum class KeyType {
  kSection,  ///< A map of further keys.
  kWord,     ///< Any word.
  kChoice,   ///< One of `choices`.
  kInteger,
  kNumber,
  kFlag,
  kOther,  ///< A value that code of its own reads; `wanted` describes it.
};

/// Whether ${name} may be the value of a key, and what that does.
enum class Searched {
  kNo,
  kPerSlot,  ///< Reaches only per-slot numbers: trials with different values share an array.
  kPadded,   ///< Says how much of a trial's tensors is used: trials share an array, and a copy of a trial keeps it.
  kShape,    ///< Changes what is computed: trials are packed by its value.
};

/// One key. Bounds hold for kInteger and kNumber.
struct Key {
  std::string path;  ///< "train.optimizer.lr"; "parameters.*.min" for a key of every parameter.
  KeyType type = KeyType::kNumber;
  /// The value where the key is absent, as a config would say it or, for readers that decide, in words; nullopt: the
  /// key is required.
  std::optional<std::string> fallback = std::nullopt;
  double least = -std::numeric_limits<double>::infinity();
  double most = std::numeric_limits<double>::infinity();
  bool above = false, below = false;  ///< `least`, `most` themselves are excluded.
  std::vector<std::string> choices = {};
  std::vector<std::string> only = {};  ///< Names of the optimizer, schedule, ... that have this key; empty: all.
  Searched searched = Searched::kNo;
  /// The loss of evaluation depends on it, so that losses of trials that differ in it do not compare.
  bool of_evaluation = false;
  const char* wanted = nullptr;  ///< Describes the value in messages; nullptr: type and bounds do.
  std::string sentence = {};
  /// The section whose key of the same name it repeats, but for the default; "": none. All that repeat a section have
  /// one row of the reference page, and so one default.
  std::string repeats = {};
};

/// All keys, in the order of the reference page.
[[nodiscard]] const std::vector<Key>& all_keys();

/// The row of a path; nullptr if there is none.
[[nodiscard]] const Key* find_key(std::string_view path);

/// Names of the keys of a section: "train" -> epochs, loss, ...; "" -> the top level.
[[nodiscard]] std::vector<std::string> keys_of(std::string_view section);

/// The key that a section's value stands for where it is no map: "name" (`loss: mse`) or "count" (`folds: 5`); "" for
/// all other sections.
[[nodiscard]] std::string_view short_for(std::string_view path);

/// "a number of at least 0", "one of adam, adamw, sgd".
[[nodiscard]] std::string wanted_text(const Key& key);

/// The tables of docs/config.md, one per section.
[[nodiscard]] std::string key_reference();

/// The message for a key of another tool's file, or of a later version, instead of "unknown key"; "" for all others.
[[nodiscard]] std::string foreign_key_message(std::string_view path);

}  // namespace hfta::engine::configuration
