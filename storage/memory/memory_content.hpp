#pragma once
/// The contents of MemoryStudies. Private to storage/memory/.

#include <cstdint>
#include <filesystem>
#include <map>
#include <mutex>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "storage/memory/memory_store.hpp"
#include "storage/rules.hpp"

namespace hfta::storage {

/// A trial as it is read, and what the store alone knows of it.
struct MemoryTrial {
  trials::Trial row;
  bool is_ours = false;   ///< It has a draw.
  trials::Params wanted;  ///< Parameters that it was enqueued with.
};

struct MemoryStudy {
  StudyRecord record;
  Distributions distributions;
  std::vector<MemoryTrial> trials;  ///< Indexed by number.
  std::vector<int> draws;
  std::map<int, ArrayRecord> arrays;
  std::map<std::pair<int, int>, RoundRecord> rounds;               ///< Keyed by round and array.
  std::map<std::tuple<int, int, int>, OccupancyRecord> occupancy;  ///< Keyed by round, array and slot.

  /// Throws Error{kInternal} if there is no trial of that number.
  [[nodiscard]] MemoryTrial& trial(int number);
  /// The parameters as they are kept. Throws Error{kInternal} for one that no trial of the study can have.
  [[nodiscard]] trials::Params checked(const trials::Params& params) const;
  /// The trial becomes ours, under the next draw.
  void draw(int number, trials::Params params, trials::UtcTime when);
};

/// A holder's mark.
struct MemoryMark {
  MemoryStudies::Fate fate = MemoryStudies::Fate::kBeats;
  std::uint64_t looks = 0;
};

struct MemoryStudies::Content {
  /// Throws Error{kStorage} naming the nearest if there is none.
  [[nodiscard]] MemoryStudy& study(const std::string& name);

  std::filesystem::path name;
  mutable std::mutex mutex;  ///< Guards all members below.
  std::vector<MemoryStudy> studies;
  std::map<std::string, Lease> leases;                             ///< Keyed by study, which need not exist.
  std::map<std::string, std::map<std::string, MemoryMark>> marks;  ///< Keyed by study and token.
  std::uint64_t writes = 0, last_token = 0;
};

/// The marks at a study of `content`.
class MemoryStudies::Marks final : public HolderMarks {
 public:
  Marks(Content& content, std::string study) : content_(content), study_(std::move(study)) {}
  [[nodiscard]] std::optional<Sight> look(const Lease& lease) override;
  [[nodiscard]] std::unique_ptr<HolderMark> leave(double period) override;
  [[nodiscard]] std::vector<std::string> names() override;
  void remove(const std::string& name) override;

 private:
  Content& content_;
  std::string study_;
};

}  // namespace hfta::storage
