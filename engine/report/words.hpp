#pragma once
/// Numbers and parameters as people read them.

#include <cstddef>
#include <string>

#include "trials/trial.hpp"

namespace hfta::engine {

/// A value with six significant digits.
[[nodiscard]] std::string value_text(double value);

/// A parameter's value: numbers with four significant digits, words and integers in full.
[[nodiscard]] std::string param_text(const trials::ParamValue& value);

/// "lr=0.01 wd=0 hidden=64".
[[nodiscard]] std::string params_text(const trials::Params& params);

/// A duration: "8.2 s", "3:07", "2:03:07"; "?" if it is negative or not finite.
[[nodiscard]] std::string duration_text(double seconds);

/// "1 trial", "3 trials".
[[nodiscard]] std::string counted(std::size_t count, const char* one, const char* many);

/// "maximize val_accuracy, minimize parameters".
[[nodiscard]] std::string objectives_text(const trials::Objectives& objectives);

}  // namespace hfta::engine
