#pragma once
/// What the storage tests share: temporary folders, files in memory, and a study in which everything occurs.

#include <filesystem>
#include <map>
#include <set>
#include <string>

#include "base/files.hpp"
#include "storage/store.hpp"

namespace hfta::storage::testing {

/// A folder of its own, removed with everything in it.
class TempFolder {
 public:
  TempFolder();
  ~TempFolder();
  TempFolder(const TempFolder&) = delete;
  TempFolder& operator=(const TempFolder&) = delete;
  [[nodiscard]] std::filesystem::path operator/(const std::string& name) const { return path_ / name; }
  [[nodiscard]] const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

[[nodiscard]] std::string read_file(const std::filesystem::path& path);
void write_file(const std::filesystem::path& path, const std::string& bytes);

/// Files in a map that a test can turn bits of. Reads of the paths in `unreadable` fail; so do writes once
/// `writes_left` are done.
class BreakableFiles final : public Files {
 public:
  std::map<std::string, std::string> contents;
  std::set<std::string> unreadable;
  int writes_left = 1'000'000;

  [[nodiscard]] std::vector<std::byte> read(const std::filesystem::path& path, std::size_t limit) override;
  [[nodiscard]] bool exists(const std::filesystem::path& path) override { return contents.contains(path.string()); }
  void write_atomically(const std::filesystem::path& path, std::span<const std::byte> bytes) override;
  void remove(const std::filesystem::path& path) override { contents.erase(path.string()); }
  [[nodiscard]] std::vector<std::string> list(const std::filesystem::path& folder) override;
};

/// 2026-11-21 07:00:00 UTC and `seconds` later.
[[nodiscard]] trials::UtcTime at(double seconds);

/// One parameter of every kind of distribution, named after its kind.
[[nodiscard]] trials::Space every_kind();
/// A value of each, differing with `trial`.
[[nodiscard]] trials::Params params_of(int trial);
[[nodiscard]] StudyRecord sample_study(const std::string& name);

/// Six trials after two rounds: COMPLETE, PRUNED, FAIL by NaN, RUNNING, FAIL by -inf, COMPLETE with the best value.
constexpr int kSampleTrials = 6;
/// What each round writes, less rounds and occupancy of trials that have ended.
[[nodiscard]] Changes sample_round(int round);
/// Creates sample_study(name), adds its trials, commits its rounds and takes its lease, which is not held.
void write_sample(Store& store, const std::string& name);
/// Makes a store in a new file and writes sample "s" to it.
void write_store(const std::filesystem::path& file);
/// A study of two objectives, val_accuracy up and parameters down: trials 0, 1 and 4 are its Pareto front, trial 2 is
/// dominated, 3 has failed, 5 runs.
void write_front(Store& store, const std::string& name);
/// What lease() must give for it.
[[nodiscard]] Lease sample_lease();
/// What trials() must give for it.
[[nodiscard]] std::vector<trials::Trial> sample_trials();

}  // namespace hfta::storage::testing
