#include "storage/checkpoints.hpp"

#include <fmt/format.h>

#include <functional>
#include <map>
#include <mutex>
#include <string_view>
#include <utility>

#include "base/error.hpp"
#include "storage/state_file.hpp"

namespace hfta::storage {
namespace {

// Bytes that a file may hold beyond the size in its name and still be read: a damaged folder cannot fill the memory.
constexpr std::size_t kSlack = std::size_t{1} << 20;

}  // namespace

struct Checkpoints::State {
  using Generations = std::multimap<int, StateFile, std::greater<>>;  // one trial's files by epoch, newest first

  State(Files& files_used, std::filesystem::path where) : files(files_used), folder(std::move(where)) {}

  /// The files there are; the folder is listed at the first call. Callers hold the mutex.
  std::map<int, Generations>& generations() {
    if (!listed) {
      for (const std::string& name : files.list(folder)) {
        if (const auto g = state_file_from(name)) trials[g->trial].emplace(g->epoch, *g);
      }
      listed = true;
    }
    return trials;
  }

  void remove_file(const StateFile& generation) { files.remove(folder / generation.name()); }

  Files& files;
  std::filesystem::path folder;
  std::mutex mutex;
  bool listed = false;
  std::map<int, Generations> trials;
};

Checkpoints::Checkpoints(Files& files, std::filesystem::path folder)
    : state_(std::make_unique<State>(files, std::move(folder))) {}
Checkpoints::~Checkpoints() = default;
Checkpoints::Checkpoints(Checkpoints&&) noexcept = default;

void Checkpoints::save(int trial, int epoch, std::span<const std::byte> bytes) {
  const StateFile written{trial, epoch, bytes.size(), checksum_of(bytes)};
  const std::lock_guard lock(state_->mutex);
  State::Generations& files = state_->generations()[trial];
  state_->files.write_atomically(state_->folder / written.name(), bytes);
  const auto previous = files.upper_bound(epoch);  // the one file just before `epoch` is kept, too
  const auto newest = files.emplace(epoch, written);
  for (auto it = files.begin(); it != files.end();) {
    if (it == previous || it == newest) {
      ++it;
      continue;
    }
    if (!(it->second == written)) state_->remove_file(it->second);
    it = files.erase(it);
  }
}

std::optional<Checkpoint> Checkpoints::load(int trial) {
  const std::lock_guard lock(state_->mutex);
  const auto found = state_->generations().find(trial);
  if (found == state_->generations().end()) return std::nullopt;
  std::optional<Error> unreadable;
  for (const auto& [epoch, g] : found->second) {
    try {
      std::vector<std::byte> bytes = state_->files.read(state_->folder / g.name(), g.size + kSlack);
      if (bytes.size() == g.size && checksum_of(bytes) == g.checksum) {
        return Checkpoint{g.epoch, std::move(bytes)};
      }
    } catch (const Error& error) {
      if (state_->files.exists(state_->folder / g.name())) unreadable = error;
    }
  }
  if (unreadable) throw *unreadable;
  return std::nullopt;
}

void Checkpoints::remove(int trial) {
  const std::lock_guard lock(state_->mutex);
  const auto found = state_->generations().find(trial);
  if (found == state_->generations().end()) return;
  for (const auto& [epoch, generation] : found->second) state_->remove_file(generation);
  state_->trials.erase(found);
}

void Checkpoints::remove_up_to(int trial, int epoch) {
  const std::lock_guard lock(state_->mutex);
  const auto found = state_->generations().find(trial);
  if (found == state_->generations().end()) return;
  State::Generations& files = found->second;
  const auto first = files.lower_bound(epoch);  // newest come first
  for (auto it = first; it != files.end(); ++it) state_->remove_file(it->second);
  files.erase(first, files.end());
}

std::optional<std::filesystem::path> Checkpoints::discard(int trial, int epoch) {
  const std::lock_guard lock(state_->mutex);
  State::Generations& files = state_->generations()[trial];
  const auto found = files.find(epoch);
  if (found == files.end()) return std::nullopt;
  std::filesystem::path path = state_->folder / found->second.name();
  state_->remove_file(found->second);
  files.erase(found);
  return path;
}

void Checkpoints::sweep() {
  const std::lock_guard lock(state_->mutex);
  for (const std::string& name : state_->files.list(state_->folder)) {
    if (is_temporary_state(name)) state_->files.remove(state_->folder / name);
  }
}

std::vector<int> Checkpoints::trials() {
  const std::lock_guard lock(state_->mutex);
  std::vector<int> numbers;
  for (const auto& [trial, generations] : state_->generations()) {
    if (!generations.empty()) numbers.push_back(trial);
  }
  return numbers;
}

const char* name_of(StateKind kind) {
  static constexpr std::array kNames = {"running", "finished", "copied"};
  return kNames.at(static_cast<std::size_t>(kind));
}

StudyStates::StudyStates(Files& files, const std::filesystem::path& folder) {
  for (const StateKind kind : kStateKinds) kinds_.emplace_back(files, folder / name_of(kind));
}

std::filesystem::path states_folder(const std::filesystem::path& store) {
  std::filesystem::path folder = store;
  return folder += ".hfta";
}

std::filesystem::path checkpoint_folder(const std::filesystem::path& store, const std::string& study) {
  static constexpr std::string_view kSafe = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.+=@ ";
  static constexpr std::size_t kLongest = 100;
  std::string name = study.substr(0, kLongest);
  for (char& c : name) {
    if (kSafe.find(c) == std::string_view::npos) c = '_';
  }
  if (!name.empty() && name.front() == '.') name.front() = '_';
  if (name != study || name.empty()) name += fmt::format("-{:016x}", checksum_of(std::as_bytes(std::span(study))));
  return states_folder(store) / name;
}

}  // namespace hfta::storage
