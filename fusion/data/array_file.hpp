#pragma once
/// Arrays of numbers as files have them, and in NumPy's files: one .npy, or members of an .npz. Internal to
/// fusion/data.

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "fusion/data/sources.hpp"
#include "fusion/dataset.hpp"

namespace hfta::fusion {

/// What an array's numbers become.
enum class Use {
  kNumbers,   ///< float32 if that holds every value of the file's type (float16, up to 16-bit integers), else float64
  kLabels,    ///< int64; floats must be whole numbers
  kIntegers,  ///< int64, for a model's input; floats must be whole numbers
  kNothing,   ///< they are not read
};

/// An array as the file has it, row-major; `shape` includes the samples' dimension.
struct StoredArray {
  Shape shape;
  Numbers numbers;
  SampleRows rows = {};  ///< Where samples begin among the numbers.
};

/// How an array's numbers lie in a file.
struct NumberLayout {
  NumberType type;
  bool big_endian = false;
  bool fortran_order = false;
  Shape shape;
  std::size_t elements = 0;  ///< Product of shape; elements * type.width does not overflow.
};

/// The numbers of an array, from byte `at` of `source` on, which has all of them. They stay there, except that those in
/// Fortran order are copied into memory, and so are big-endian ones of a source in memory. One pass over floating-point
/// numbers, in blocks, looks for what Error{kConfig} is thrown for, beginning with `place`: numbers that are not
/// finite, or not whole where integers are wanted.
[[nodiscard]] StoredArray read_numbers(const NumberLayout& layout, std::shared_ptr<const ByteSource> source,
                                       std::uint64_t at, Use use, const std::string& place);

/// A .npy file, format versions 1 to 3: booleans, integers and floats of any width and byte order, in C or
/// Fortran order. Nothing is allocated on the word of a header that the bytes do not bear out.
/// Throws Error{kConfig}, beginning with `place`.
[[nodiscard]] StoredArray parse_npy(std::shared_ptr<const ByteSource> file, Use use, const std::string& place);

/// The memory that the arrays of one file may take together: a hundred times the file, or an eighth of the
/// machine's memory where that is more. So zeros and masks, which shrink to a thousandth, are read, and a small file
/// cannot fill the memory.
class Allowance {
 public:
  /// Both in bytes; `memory`: 0 asks the machine.
  explicit Allowance(std::uint64_t file, std::uint64_t memory = 0);
  /// Throws Error{kConfig}, beginning with `place`, if what has been taken would be too much by so many bytes more.
  void take(std::uint64_t bytes, const std::string& place);

 private:
  std::uint64_t file_, most_, taken_ = 0;
};

/// The array called `name` of an .npz (stored or deflated members "name.npy"). Throws as parse_npy, and for a missing
/// array (the nearest is named) and what `allowance` does not allow, before the memory is taken. A stored member that
/// `files` does not load stays where it is.
[[nodiscard]] StoredArray read_npz(const std::filesystem::path& path, const std::string& name, Use use,
                                   const DataFiles& files, Allowance& allowance, const std::string& place);

}  // namespace hfta::fusion
