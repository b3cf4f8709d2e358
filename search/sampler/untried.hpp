#pragma once
/// Draws that do not repeat a configuration. Internal to samplers that learn.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <unordered_set>
#include <vector>

#include "search/sampler.hpp"

namespace hfta::search {

/// Text that two configurations share only if they are the same: each name, value's type and value, with lengths.
[[nodiscard]] std::string key_of(const trials::Params& params);

/// Configurations that were drawn already. Where repeats are allowed, it stays empty.
class Tried {
 public:
  /// REQUIRES a valid space. Conditions play no part: a space with conditions is never full.
  explicit Tried(const trials::Space& space, Repeats repeats = Repeats::kAvoided);
  [[nodiscard]] bool is_finite() const { return size_.has_value(); }
  /// Whether no new configuration is left.
  [[nodiscard]] bool is_full() const { return size_ && static_cast<double>(keys_.size()) >= *size_; }
  /// Becomes the configurations of `history`. Cheap where that begins with those that are here.
  void reset(const History& history);
  void add(const trials::Params& params);
  [[nodiscard]] bool contains(const trials::Params& params) const { return keeps_ && contains_key(key_of(params)); }
  [[nodiscard]] bool contains_key(const std::string& key) const { return keys_.contains(key); }

 private:
  bool keeps_;                  ///< Repeats are avoided.
  std::optional<double> size_;  ///< Number of possible configurations; unset: infinitely many, or repeats are allowed.
  std::vector<trials::Params> added_;
  std::unordered_set<std::string> keys_;
};

/// k draws: draw(0), draw(1), ..., each of which is tried before the next.
template <typename Draw>
[[nodiscard]] std::vector<trials::Params> in_turn(int k, Tried& tried, const Draw& draw) {
  std::vector<trials::Params> drawn;
  for (int i = 0; i < k; ++i) {
    drawn.push_back(draw(i));
    tried.add(drawn.back());
  }
  return drawn;
}

/// The draw `number` of `random`, a random search; where that was tried, the next of its draws that was not. Once all
/// are tried, or where thousands of draws give none, it is the draw itself. `given` takes the place of what was drawn,
/// as long as the result was not tried.
[[nodiscard]] trials::Params untried(Sampler& random, int number, const Tried& tried, const trials::Params& given = {});

}  // namespace hfta::search
