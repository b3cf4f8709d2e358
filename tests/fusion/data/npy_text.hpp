#pragma once
/// .npy files written by hand.

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

namespace hfta::fusion::test {

template <typename T>
std::string bytes_of(const std::vector<T>& numbers) {
  std::string bytes(numbers.size() * sizeof(T), '\0');
  if (!numbers.empty()) std::memcpy(bytes.data(), numbers.data(), bytes.size());
  return bytes;
}

/// A .npy file of that format version around any header text.
inline std::string npy_file(const std::string& header, const std::string& payload, int version = 1) {
  std::string bytes = "\x93NUMPY";
  bytes += static_cast<char>(version);
  bytes += '\0';
  for (int i = 0; i < (version == 1 ? 2 : 4); ++i) bytes += static_cast<char>(header.size() >> (8 * i) & 255);
  return bytes + header + payload;
}

/// "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }", padded as NumPy pads it.
inline std::string npy_header(const std::string& type, const std::string& shape, bool fortran = false) {
  std::string text =
      "{'descr': '" + type + "', 'fortran_order': " + (fortran ? "True" : "False") + ", 'shape': " + shape + ", }";
  while ((text.size() + 11) % 64 != 0) text += ' ';
  return text + "\n";
}

template <typename T>
std::string npy(const std::string& type, const std::string& shape, const std::vector<T>& numbers) {
  return npy_file(npy_header(type, shape), bytes_of(numbers));
}

}  // namespace hfta::fusion::test
