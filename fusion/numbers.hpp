#pragma once
/// Numbers of a set of data, in the type that their file has, in memory or in the file. Without torch.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "fusion/graph.hpp"

namespace hfta::fusion {

/// How a number is stored.
struct NumberType {
  char kind = 'f';        ///< NumPy's letter: b boolean, i and u integers, f floats; B: bfloat16.
  std::size_t width = 4;  ///< Bytes.
  bool operator==(const NumberType&) const = default;
};

/// The type that a graph knows it by; nullopt: unsigned integers of more than 8 bits.
[[nodiscard]] std::optional<DType> dtype_of(NumberType type);

/// Bytes that are read from any place. Thread-safe.
class ByteSource {
 public:
  virtual ~ByteSource() = default;
  [[nodiscard]] virtual std::uint64_t size() const = 0;
  /// Copies the bytes from `at` on. Throws Error{kConfig} for a file that ends before them or cannot be read.
  virtual void read(std::uint64_t at, std::span<std::byte> out) const = 0;
  /// All bytes, for as long as the source lives; nullptr: they lie in a file.
  [[nodiscard]] virtual const std::byte* memory() const { return nullptr; }
  /// Throws Error{kConfig} for a file that is not what it was when it was opened.
  virtual void check_unchanged() const {}
};

/// An array of numbers of one type. A value; copies share the bytes, which nobody changes.
class Numbers {
 public:
  Numbers() = default;
  // NOLINTBEGIN(google-explicit-constructor): a vector is an array of numbers
  Numbers(const std::vector<float>& numbers);
  Numbers(const std::vector<double>& numbers);
  Numbers(const std::vector<std::int64_t>& numbers);
  // NOLINTEND(google-explicit-constructor)
  /// `size` numbers from byte `at` of `bytes` on, stored as `type`; `big_endian`: their bytes stand the other way round
  /// there, which is for sources in files alone. `dtype`: see there.
  Numbers(std::shared_ptr<const ByteSource> bytes, std::uint64_t at, std::int64_t size, NumberType type, DType dtype,
          bool big_endian = false);

  [[nodiscard]] std::int64_t size() const { return size_; }
  [[nodiscard]] NumberType type() const { return type_; }
  /// The type they are used as: float32, float64 or int64, which hold every value of the stored type (but float64 not
  /// every integer beyond 2^53).
  [[nodiscard]] DType dtype() const { return dtype_; }
  /// The first number; nullptr: the numbers lie in a file.
  [[nodiscard]] const std::byte* memory() const;
  /// Copies numbers from `begin` on, as stored, in this machine's order of bytes. Throws as ByteSource::read.
  void read(std::int64_t begin, std::span<std::byte> out) const;
  void check_unchanged() const;

 private:
  std::shared_ptr<const ByteSource> bytes_;
  std::uint64_t at_ = 0;
  std::int64_t size_ = 0;
  NumberType type_;
  DType dtype_ = DType::kFloat32;
  bool big_endian_ = false;
};

/// Where samples begin among numbers: sample i at number first + step * i, or, of those `chosen`, step * chosen[i].
struct SampleRows {
  std::int64_t first = 0;
  std::int64_t step = 0;  ///< 0: one sample behind another.
  std::shared_ptr<const std::vector<std::int64_t>> chosen = nullptr;
};

}  // namespace hfta::fusion
