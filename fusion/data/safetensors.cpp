#include "fusion/data/safetensors.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "base/error.hpp"
#include "base/text.hpp"

namespace hfta::fusion {
namespace {

static_assert(std::endian::native == std::endian::little, "safetensors is little-endian");

constexpr std::uint64_t kHeaderLimit = 16u << 20;

[[noreturn]] void malformed(const std::string& what) { throw Error(ErrorKind::kStorage, "safetensors: " + what); }

std::uint64_t element_size(const std::string& dtype) {
  static const std::map<std::string, std::uint64_t> sizes = {
      {"F64", 8},
      {"F32", 4},
      {"F16", 2},
      {"BF16", 2},
      {"I64", 8},
      {"I32", 4},
      {"I16", 2},
      {"I8", 1},
      {"U64", 8},
      {"U32", 4},
      {"U16", 2},
      {"U8", 1},
      {"BOOL", 1},
      {"C64", 8},
      // Types that may be in a file beside others; asking for a tensor of one is an error.
      {"F8_E4M3", 1},
      {"F8_E5M2", 1},
      {"F8_E8M0", 1}};
  const auto it = sizes.find(dtype);
  if (it == sizes.end()) malformed("unknown dtype '" + excerpt(dtype) + "'");
  return it->second;
}

std::uint64_t whole_number(const nlohmann::json& number, const std::string& name) {
  if (!number.is_number_unsigned()) {
    malformed(fmt::format("'{}': found {} in its shape or data_offsets, wanted whole numbers from 0", excerpt(name),
                          number.is_number() ? number.dump() : "no number"));
  }
  return number.get<std::uint64_t>();
}

// `data`: bytes behind the header, which takes the file's first `header`.
TensorPlace parse_tensor(const std::string& name, const nlohmann::json& entry, std::uint64_t header,
                         std::uint64_t data) {
  TensorPlace tensor;
  tensor.name = name;
  tensor.dtype = entry.at("dtype").get<std::string>();
  std::uint64_t size = element_size(tensor.dtype);
  for (const nlohmann::json& dim : entry.at("shape")) {
    const std::uint64_t extent = whole_number(dim, name);
    if (extent > (std::uint64_t{1} << 40)) malformed("'" + excerpt(name) + "' has an absurd shape");
    if (__builtin_mul_overflow(size, extent, &size)) malformed("'" + excerpt(name) + "' has an absurd shape");
    tensor.shape.push_back(static_cast<std::int64_t>(extent));
  }
  const auto& offsets = entry.at("data_offsets");
  const std::uint64_t begin = whole_number(offsets.at(0), name), end = whole_number(offsets.at(1), name);
  if (begin > end || end > data || end - begin != size) {
    malformed(fmt::format("'{}' lies at {}..{} of {} bytes, wanted {} bytes", excerpt(name), begin, end, data, size));
  }
  tensor.begin = header + begin;
  tensor.end = header + end;
  return tensor;
}

SafetensorsHeader parse_entries(const nlohmann::json& entries, std::uint64_t header, std::uint64_t data) {
  SafetensorsHeader file;
  for (const auto& [name, entry] : entries.items()) {
    if (name == "__metadata__") {
      file.metadata = entry.get<std::map<std::string, std::string>>();
    } else {
      file.tensors.push_back(parse_tensor(name, entry, header, data));
    }
  }
  std::sort(file.tensors.begin(), file.tensors.end(), [](const TensorPlace& a, const TensorPlace& b) {
    return a.begin != b.begin ? a.begin < b.begin : a.end < b.end;
  });
  std::uint64_t expected = header;
  for (const TensorPlace& tensor : file.tensors) {
    if (tensor.begin != expected) malformed("'" + excerpt(tensor.name) + "' overlaps its neighbour or leaves a gap");
    expected = tensor.end;
  }
  if (expected != header + data) malformed("bytes behind the last tensor");
  return file;
}

// nlohmann keeps the last of two equal keys; a file that names a tensor twice is refused instead.
nlohmann::json parse_json(std::string_view text) {
  std::set<std::string> seen;
  const auto callback = [&](int depth, nlohmann::json::parse_event_t event, nlohmann::json& parsed) {
    if (event == nlohmann::json::parse_event_t::key && depth == 1 && !seen.insert(parsed.get<std::string>()).second) {
      malformed("'" + excerpt(parsed.get<std::string>()) + "' appears twice");
    }
    return true;
  };
  return nlohmann::json::parse(text, callback);
}

}  // namespace

std::vector<std::byte> write_safetensors(std::span<const TensorView> tensors,
                                         const std::map<std::string, std::string>& metadata) {
  nlohmann::ordered_json header;
  header["__metadata__"] = metadata;
  std::uint64_t offset = 0;
  for (const TensorView& tensor : tensors) {
    header[tensor.name] = {
        {"dtype", tensor.dtype}, {"shape", tensor.shape}, {"data_offsets", {offset, offset + tensor.bytes.size()}}};
    offset += tensor.bytes.size();
  }
  std::string text = header.dump();
  text.resize((text.size() + 7) / 8 * 8, ' ');  // data starts aligned
  const std::uint64_t length = text.size();
  std::vector<std::byte> out(8 + text.size() + offset);
  std::memcpy(out.data(), &length, 8);
  std::memcpy(out.data() + 8, text.data(), text.size());
  std::byte* place = out.data() + 8 + text.size();
  for (const TensorView& tensor : tensors) {
    place = std::copy(tensor.bytes.begin(), tensor.bytes.end(), place);
  }
  return out;
}

std::uint64_t safetensors_header_size(std::span<const std::byte> first, std::uint64_t file) {
  if (first.size() < 8) malformed(fmt::format("found {} bytes, wanted at least 8", first.size()));
  std::uint64_t length = 0;
  std::memcpy(&length, first.data(), 8);
  if (length > kHeaderLimit || length > file - 8) malformed(fmt::format("header claims {} of {} bytes", length, file));
  return 8 + length;
}

SafetensorsHeader parse_safetensors_header(std::span<const std::byte> header, std::uint64_t file) {
  const std::string_view text(reinterpret_cast<const char*>(header.data()) + 8, header.size() - 8);
  try {
    return parse_entries(parse_json(text), header.size(), file - header.size());
  } catch (const nlohmann::json::exception& e) {
    malformed("header: " + excerpt(e.what(), 200));
  }
}

SafetensorsFile parse_safetensors(std::span<const std::byte> bytes) {
  SafetensorsHeader header =
      parse_safetensors_header(bytes.first(safetensors_header_size(bytes, bytes.size())), bytes.size());
  SafetensorsFile file{{}, std::move(header.metadata)};
  for (TensorPlace& tensor : header.tensors) {
    file.tensors.push_back({std::move(tensor.name), std::move(tensor.dtype), std::move(tensor.shape),
                            bytes.subspan(tensor.begin, tensor.end - tensor.begin)});
  }
  return file;
}

const char* safetensors_name(DType dtype) {
  switch (dtype) {
    case DType::kFloat32:
      return "F32";
    case DType::kFloat64:
      return "F64";
    case DType::kInt64:
      return "I64";
    case DType::kFloat16:
      return "F16";
    case DType::kBFloat16:
      return "BF16";
    case DType::kInt32:
      return "I32";
    case DType::kInt16:
      return "I16";
    case DType::kInt8:
      return "I8";
    case DType::kUInt8:
      return "U8";
    case DType::kBool:
      return "BOOL";
    case DType::kComplex64:
      return "C64";
    case DType::kComplex128:
      return "";  // the format has none
  }
  return "";
}

}  // namespace hfta::fusion
