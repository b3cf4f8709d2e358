#pragma once
/// Slot states on disk, as bytes: `<store>.hfta/<study>/`.

#include <cstddef>
#include <filesystem>
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

/// Keeps the newest two generations per trial. A checksum of the bytes stands in the file's name, so that payloads stay
/// plain safetensors and a flipped bit is never loaded. Thread-safe if `files` is.
class Checkpoints {
 public:
  Checkpoints(Files& files, std::filesystem::path folder);
  /// Durable when it returns. Older generations than the last two are removed.
  void save(int trial, int epoch, std::span<const std::byte> bytes);
  /// The newest generation that verifies; damaged ones are passed over. nullopt if none is left.
  [[nodiscard]] std::optional<Checkpoint> load(int trial);
  void remove(int trial);
  /// Removes temporary files that a killed process left.
  void sweep();
  /// Numbers of the trials that have at least one file, ascending.
  [[nodiscard]] std::vector<int> trials();

 private:
  Files& files_;
  std::filesystem::path folder_;
};

/// `<store>.hfta/<study>`, with characters that are unsafe in a path replaced.
[[nodiscard]] std::filesystem::path checkpoint_folder(const std::filesystem::path& store, const std::string& study);

}  // namespace hfta::storage
