#pragma once
/// The most slots that arrays may have, by device and partition.

#include <cstddef>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>

namespace hfta::engine {

/// A limit is found once, and only becomes smaller, where memory runs out. Devices are identified by their index. Not
/// thread-safe.
class WidthLimits {
 public:
  /// The width that a device recommends for arrays of a partition; `draw`: one of the partition's trials. May take its
  /// time, and throws what Trainer::plan() throws.
  using Recommended = std::function<int(std::size_t device, int draw)>;

  /// `width`: the config's width; unset: each partition's recommended one.
  WidthLimits(std::optional<int> width, Recommended recommended);

  /// The limit, at least 1. `draw`: one of the partition's trials.
  [[nodiscard]] int limit(std::size_t device, const std::string& partition, int draw);
  /// Memory did not suffice for `width` slots.
  void halve(std::size_t device, const std::string& partition, int width);
  /// The widest limit that is known, and at least 16: the config's width, or the widest that was found.
  [[nodiscard]] int widest() const { return widest_; }

 private:
  std::optional<int> width_;
  Recommended recommended_;
  std::map<std::pair<std::size_t, std::string>, int> limits_;
  int widest_ = 16;
};

}  // namespace hfta::engine
