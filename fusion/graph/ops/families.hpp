#pragma once
/// The rows of the table of ops (fusion/op_traits.hpp). Internal to fusion/graph.

#include <span>
#include <string_view>

#include "fusion/op_traits.hpp"

namespace hfta::fusion {

enum class Forms {
  kFunctional,  ///< "name" alone.
  kBoth,        ///< "name", and "name_", which overwrites its first argument.
  kInPlace,     ///< "name", which overwrites its first argument: Python's &= and its like.
};

/// Ops that are alike in all that the table knows of them.
struct OpFamily {
  Forms forms;
  std::string_view names;  ///< Names as in native_functions.yaml, without overload; no name stands in two rows.
  OpTraits traits;         ///< Traits of all, except in_place, which `forms` says.
};

// The files of the table; op_traits.cpp joins them.
[[nodiscard]] std::span<const OpFamily> element_families();  ///< Pointwise ops, reductions.
[[nodiscard]] std::span<const OpFamily> shape_families();    ///< Views, rearrangements, factories.
[[nodiscard]] std::span<const OpFamily> product_families();  ///< Products, matrix algebra, convolutions, pools, losses.
[[nodiscard]] std::span<const OpFamily> complex_families();  ///< Complex numbers, Fourier transforms.
[[nodiscard]] std::span<const OpFamily> layer_families();    ///< Norms, attention, recurrent layers, lookups.
[[nodiscard]] std::span<const OpFamily> random_families();

}  // namespace hfta::fusion
