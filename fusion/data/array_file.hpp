#pragma once
/// Arrays of numbers in NumPy's files: one .npy, or members of an .npz. Internal to fusion/data.

#include <cstddef>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "fusion/dataset.hpp"

namespace hfta::fusion {

/// The three kinds of numbers that a Field can hold.
using Numbers = decltype(Field::data);

/// What an array's numbers become.
enum class Use {
  kNumbers,   ///< float32 if that holds every value of the file's type (float16, up to 16-bit integers), else float64
  kLabels,    ///< int64; floats must be whole numbers
  kIntegers,  ///< the same, where they are no labels but a model's input
};

/// An array as the file has it: `shape` includes the samples' dimension, `numbers` are row-major.
struct StoredArray {
  Shape shape;
  Numbers numbers;
};

/// A .npy file's bytes, format versions 1 to 3: booleans, integers and floats of any width and byte order, in C or
/// Fortran order. Nothing is allocated on the word of a header that the bytes do not bear out.
/// Throws Error{kConfig}, beginning with `place`.
[[nodiscard]] StoredArray parse_npy(std::span<const std::byte> bytes, Use use, const std::string& place);

/// The array called `name` of an .npz (stored or deflated members "name.npy"). Throws as parse_npy, and for a missing
/// array (the nearest is named) and a member that would inflate beyond belief.
[[nodiscard]] StoredArray read_npz(const std::filesystem::path& path, const std::string& name, Use use,
                                   const std::string& place);

/// A whole file. Throws Error{kConfig}.
[[nodiscard]] std::vector<std::byte> read_bytes(const std::filesystem::path& path, const std::string& place);

/// Throws Error{kConfig}: "<place>: <message>".
[[noreturn]] void fail_at(const std::string& place, const std::string& message);

}  // namespace hfta::fusion
