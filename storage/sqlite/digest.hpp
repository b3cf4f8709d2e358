#pragma once
/// Digests of rows: SQLite's pages have no checksums, so a bit that the disk flipped would show as another number in a
/// report. Private to storage/sqlite/.

#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/hash.hpp"

namespace hfta::storage {

/// The columns that a part of a digest covers. These numbers are part of stored digests, so their meaning must not
/// change.
enum class Part : std::int64_t {
  kTrial = 1,  ///< trial_id, number, draw, exact_json
  kParam,      ///< trial_id, param_name, param_value, distribution_json
  kStarted,    ///< trial_id, datetime_start
  kEpoch,      ///< trial_id, epoch, name, value, value_type
  kState,      ///< trial_id, state, datetime_complete, reason
  kValue,      ///< trial_id, value, value_type: of the first objective
  kTest,       ///< trial_id, name, value, value_type
  kStudy,  ///< study_name, directions with commas between them, metric, config, config_json, space_json, run_caps_json
  kArray,  ///< study_id, array, device, partition, width, chunk, threads, choices_json
  kRound,  ///< study_id, round, array, width, occupied, seconds
  kSlot,   ///< study_id, round, array, slot, trial_id, epoch
  kEnqueued,  ///< trial_id of a trial that another program asked for
  kSeen,      ///< trial_id, rounds that were over when it was drawn
  kEndRound,  ///< trial_id, round after which it ended
  kCopy,      ///< trial_id, key and value of the attribute that tells of a copy
  kOther,     ///< trial_id, objective, value, value_type: of another objective than the first
};

namespace detail {

inline void add(Fnv1a& hash, std::int64_t value) { hash.add(std::as_bytes(std::span(&value, 1))); }
inline void add(Fnv1a& hash, int value) { add(hash, std::int64_t{value}); }
inline void add(Fnv1a& hash, std::string_view text) {
  add(hash, static_cast<std::int64_t>(text.size()));
  hash.add(text);
}
inline void add(Fnv1a& hash, const char* text) { add(hash, std::string_view(text)); }
inline void add(Fnv1a& hash, const std::string& text) { add(hash, std::string_view(text)); }
inline void add(Fnv1a& hash, double value) {
  if (value == 0) value = 0;  // SQLite drops the sign of zero
  std::int64_t bits = 0;
  std::memcpy(&bits, &value, sizeof bits);
  add(hash, bits);
}
template <typename T>
void add(Fnv1a& hash, const std::optional<T>& value) {
  add(hash, std::int64_t{value.has_value()});
  if (value) add(hash, *value);
}

}  // namespace detail

/// The sum of the digests of parts, in any order: parts come and go one by one, at the same cost however many there
/// are. Every change of a part that keeps its length changes the sum.
class Digest {
 public:
  Digest() = default;
  /// `stored`: the sum as it is stored.
  explicit Digest(std::int64_t stored) : sum_(static_cast<std::uint64_t>(stored)) {}
  template <typename... Fields>
  static Digest of(Part part, const Fields&... fields) {
    Fnv1a hash;
    detail::add(hash, static_cast<std::int64_t>(part));
    (detail::add(hash, fields), ...);
    // Mixed (splitmix64), so that sums of similar parts differ.
    std::uint64_t bits = hash.value();
    bits = (bits ^ bits >> 30) * 0xbf58476d1ce4e5b9;
    bits = (bits ^ bits >> 27) * 0x94d049bb133111eb;
    return Digest(static_cast<std::int64_t>(bits ^ bits >> 31));
  }

  Digest& operator+=(Digest other) { return sum_ += other.sum_, *this; }
  Digest& operator-=(Digest other) { return sum_ -= other.sum_, *this; }
  bool operator==(const Digest&) const = default;
  [[nodiscard]] std::int64_t stored() const { return static_cast<std::int64_t>(sum_); }

 private:
  std::uint64_t sum_ = 0;
};

}  // namespace hfta::storage
