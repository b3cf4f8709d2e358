#pragma once
/// Where the bytes of data lie. Internal to fusion/data.

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "fusion/numbers.hpp"

namespace hfta::fusion {

/// Opens files of data, and decides how they are read.
class DataFiles {
 public:
  /// `memory`: bytes that the process may use; 0 asks the machine. A file of more than an eighth of it is not loaded:
  /// training, validation and test data, each with a copy while they are split, then leave room for the training
  /// itself.
  explicit DataFiles(std::uint64_t memory = 0);

  /// The bytes of a file: loaded, or to be read where they lie. Throws Error{kConfig}, beginning with `place`, now or
  /// when they are read.
  [[nodiscard]] std::shared_ptr<const ByteSource> open(const std::filesystem::path& path,
                                                       const std::string& place) const;
  /// Opens several files, one behind another; whether they are loaded is decided by the size of all.
  [[nodiscard]] std::shared_ptr<const ByteSource> open_joined(const std::vector<std::filesystem::path>& paths,
                                                              const std::string& place) const;
  /// Whether so many bytes are loaded.
  [[nodiscard]] bool loads(std::uint64_t size) const { return size <= largest_; }

 private:
  std::uint64_t largest_;
};

/// Room for bytes in memory, aligned for every kind of vectors. Filled by its maker, then shared as const.
class MemorySource final : public ByteSource {
 public:
  explicit MemorySource(std::uint64_t size);
  explicit MemorySource(std::span<const std::byte> bytes);
  [[nodiscard]] std::uint64_t size() const override { return size_; }
  void read(std::uint64_t at, std::span<std::byte> out) const override;
  [[nodiscard]] const std::byte* memory() const override { return bytes_.get(); }
  [[nodiscard]] std::span<std::byte> bytes() { return {bytes_.get(), size_}; }

  static constexpr std::size_t kAlignment = 64;

 private:
  struct Free {
    void operator()(std::byte* bytes) const;
  };
  std::unique_ptr<std::byte, Free> bytes_;
  std::uint64_t size_;
};

/// Several sources one behind another, as one.
class JoinedSource final : public ByteSource {
 public:
  explicit JoinedSource(std::vector<std::shared_ptr<const ByteSource>> parts);
  [[nodiscard]] std::uint64_t size() const override;
  void read(std::uint64_t at, std::span<std::byte> out) const override;
  void check_unchanged() const override;

 private:
  std::vector<std::shared_ptr<const ByteSource>> parts_;
};

/// The first bytes, at most `most`: a header.
[[nodiscard]] std::vector<std::byte> first_bytes(const ByteSource& source, std::uint64_t most);

}  // namespace hfta::fusion
