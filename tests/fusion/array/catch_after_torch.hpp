#pragma once
// c10's logging and Catch both define CHECK; tests mean Catch's.
#include <ATen/ATen.h>

#undef CHECK
#include <catch2/catch.hpp>
#include <cstddef>
#include <string>
#include <vector>

namespace Catch {
/// Slot states are compared as a whole; c10's operator<< for vectors cannot print bytes.
template <>
struct StringMaker<std::vector<std::byte>> {
  static std::string convert(const std::vector<std::byte>& bytes) { return std::to_string(bytes.size()) + " bytes"; }
};
}  // namespace Catch
