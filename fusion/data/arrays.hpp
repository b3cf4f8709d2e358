#pragma once
/// Arrays of a file as samples with their targets. Internal to fusion/data.

#include <functional>
#include <string>
#include <vector>

#include "fusion/data/array_file.hpp"
#include "fusion/dataset.hpp"

namespace hfta::fusion {

/// What arrays are read as.
struct Uses {
  Use target = Use::kNumbers;
  std::vector<Use> inputs = {};  ///< Those beyond its end are numbers.
  std::int64_t ignored = -100;   ///< A label that may be below 0.

  [[nodiscard]] Use input(std::size_t i) const { return i < inputs.size() ? inputs[i] : Use::kNumbers; }
};

/// Gives the array of that name.
using ReadArray = std::function<StoredArray(const std::string& name, Use use)>;

/// A dataset of the arrays named `x` and `y`, the latter unless Uses::target is kNothing. Throws Error{kConfig},
/// beginning with `place`, for arrays without samples or with unequal numbers of them, and for labels below zero.
[[nodiscard]] Dataset from_arrays(const std::vector<std::string>& x, const std::string& y, const Uses& uses,
                                  const std::string& place, const ReadArray& array);

/// A dataset of the arrays that `source` names: "x" and "y" where it names none.
[[nodiscard]] Dataset from_named_arrays(const DataSource& source, const Uses& uses, const std::string& place,
                                        const ReadArray& array);

/// A dataset of arrays that are files: `path` of the inputs, and beside it that of the targets, which source.y names.
[[nodiscard]] Dataset from_pair(const std::filesystem::path& path, const DataSource& source, const Uses& uses,
                                const std::string& place, const ReadArray& array);

}  // namespace hfta::fusion
