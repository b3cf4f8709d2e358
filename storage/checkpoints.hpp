#pragma once
/// Slot states on disk, as bytes: `<store>.hfta/<study>/`.

#include <array>
#include <cstddef>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/files.hpp"

namespace hfta::storage {

/// A trial's state at the end of one of its epochs.
struct Checkpoint {
  int epoch = 0;
  std::vector<std::byte> bytes;
};

/// Keeps the newest two generations per trial, in files
/// `trial-<number>.epoch-<epoch>.<size in bytes>.<CRC-64>.safetensors`. Size and checksum are part of the file's name,
/// so that files are plain safetensors and a file with a flipped bit is never loaded. Thread-safe if `files` is. The
/// folder is listed once: one process at a time writes to it (one runner per study).
class Checkpoints {
 public:
  /// `files` must outlive this. Nothing is created before the first save().
  Checkpoints(Files& files, std::filesystem::path folder);
  ~Checkpoints();
  Checkpoints(Checkpoints&&) noexcept;

  /// Durable when it returns; on failure the earlier generations stay. Of the other generations, only the newest one
  /// before `epoch` is kept: a trial that went back to an earlier epoch keeps no later generation.
  void save(int trial, int epoch, std::span<const std::byte> bytes);
  /// The newest generation whose checksum is right; damaged ones are skipped. nullopt if none is left. If none is right
  /// and one could not be read, throws Error{kStorage}, so that the trial does not begin anew.
  [[nodiscard]] std::optional<Checkpoint> load(int trial);
  void remove(int trial);
  /// The generations of that epoch and earlier ones.
  void remove_up_to(int trial, int epoch);
  /// Removes the generation of that epoch, which is undamaged but unusable, and returns its file; nullopt if there is
  /// none.
  std::optional<std::filesystem::path> discard(int trial, int epoch);
  /// Removes temporary files that a killed process left.
  void sweep();
  /// Numbers of the trials that have at least one file, ascending.
  [[nodiscard]] std::vector<int> trials();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// The purpose that states are kept for.
enum class StateKind {
  kRunning,   ///< States of trials that are not done: a stopped run resumes from them.
  kFinished,  ///< The weights of the best finished trials, and the best weights so far of trials that may join them.
  kCopied,    ///< Copies of other trials' states that unfinished trials continue from.
};
inline constexpr std::array kStateKinds = {StateKind::kRunning, StateKind::kFinished, StateKind::kCopied};
/// The name of its folder: "running", "finished", "copied".
[[nodiscard]] const char* name_of(StateKind kind);

/// The states of one study, by what they are kept for. Thread-safe if `files` is.
class StudyStates {
 public:
  /// `folder`: `<store>.hfta/<study>`; `files` must outlive this. Nothing is created before something is saved.
  StudyStates(Files& files, const std::filesystem::path& folder);
  [[nodiscard]] Checkpoints& of(StateKind kind) { return kinds_.at(static_cast<std::size_t>(kind)); }

 private:
  std::vector<Checkpoints> kinds_;
};

/// `<store>.hfta`: the states of all its studies.
[[nodiscard]] std::filesystem::path states_folder(const std::filesystem::path& store);

/// `<store>.hfta/<study>`. If the name is long or has characters that are unsafe in a path, a safe name is made from it
/// and a checksum of the name is added, so that two studies never share a folder.
[[nodiscard]] std::filesystem::path checkpoint_folder(const std::filesystem::path& store, const std::string& study);

}  // namespace hfta::storage
