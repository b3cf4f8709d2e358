#pragma once
/// The names of files that hold states. Private to storage/.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace hfta::storage {

/// A state's file, as described by its name.
struct StateFile {
  int trial = 0, epoch = 0;
  std::size_t size = 0;
  std::uint64_t checksum = 0;
  bool operator==(const StateFile&) const = default;
  [[nodiscard]] std::string name() const;
};

/// nullopt for any name but those that StateFile::name() gives.
[[nodiscard]] std::optional<StateFile> state_file_from(std::string_view name);

/// Whether it is the name of a file to which a state is being written, or was when its process was killed.
[[nodiscard]] bool is_temporary_state(const std::string& name);

/// CRC-64/XZ: every flip of up to 64 neighbouring bits is detected.
[[nodiscard]] std::uint64_t checksum_of(std::span<const std::byte> bytes);

}  // namespace hfta::storage
