#pragma once
/// safetensors (huggingface.co/docs/safetensors): 8 bytes of header length, a JSON header, raw little-endian data.

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "fusion/graph.hpp"

namespace hfta::fusion {

/// One tensor of a file; `bytes` points into memory that the caller keeps alive.
struct TensorView {
  std::string name;
  std::string dtype;  ///< "F32", "F64", "I64", "I32", "BOOL", ...
  std::vector<std::int64_t> shape;
  std::span<const std::byte> bytes;
};

/// The file as bytes. Tensors stand in the given order; names must be unique.
[[nodiscard]] std::vector<std::byte> write_safetensors(std::span<const TensorView> tensors,
                                                       const std::map<std::string, std::string>& metadata);

/// The format's word for it: "F32".
[[nodiscard]] const char* safetensors_name(DType dtype);

struct SafetensorsFile {
  std::vector<TensorView> tensors;  ///< Ascending by offset; views into the bytes that were parsed.
  std::map<std::string, std::string> metadata;
};

/// Where a tensor lies: bytes [begin, end) of the file.
struct TensorPlace {
  std::string name, dtype;
  std::vector<std::int64_t> shape;
  std::uint64_t begin = 0, end = 0;
};

struct SafetensorsHeader {
  std::vector<TensorPlace> tensors;  ///< Ascending by place.
  std::map<std::string, std::string> metadata;
};

/// Bytes of the file that its header takes, from its first eight. Throws as parse_safetensors.
[[nodiscard]] std::uint64_t safetensors_header_size(std::span<const std::byte> first, std::uint64_t file);

/// `header`: the file's first safetensors_header_size bytes; `file`: the size of the whole. Throws as
/// parse_safetensors.
[[nodiscard]] SafetensorsHeader parse_safetensors_header(std::span<const std::byte> header, std::uint64_t file);

/// Throws Error{kStorage} for anything that is not a well-formed file: header over 16 MiB, offsets that overlap, leave
/// gaps or run over the end, sizes that do not follow from shape and dtype, names that appear twice.
[[nodiscard]] SafetensorsFile parse_safetensors(std::span<const std::byte> bytes);

}  // namespace hfta::fusion
