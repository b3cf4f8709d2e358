// Data in safetensors files: arrays by name.

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <memory>

#include "base/error.hpp"
#include "base/text.hpp"
#include "fusion/data/file_bytes.hpp"
#include "fusion/data/readers.hpp"
#include "fusion/data/safetensors.hpp"

namespace hfta::fusion {
namespace {

namespace fs = std::filesystem;

const std::map<std::string, NumberType> kTypes = {
    {"F64", {'f', 8}}, {"F32", {'f', 4}}, {"F16", {'f', 2}}, {"BF16", {'B', 2}}, {"I64", {'i', 8}},
    {"I32", {'i', 4}}, {"I16", {'i', 2}}, {"I8", {'i', 1}},  {"U64", {'u', 8}},  {"U32", {'u', 4}},
    {"U16", {'u', 2}}, {"U8", {'u', 1}},  {"BOOL", {'b', 1}}};

SafetensorsHeader read_header(const ByteSource& file, const std::string& place) {
  try {
    const std::uint64_t size = safetensors_header_size(first_bytes(file, 8), file.size());
    return parse_safetensors_header(first_bytes(file, size), file.size());
  } catch (const Error& error) {
    fail_at(place, error.what());
  }
}

StoredArray array_of(const SafetensorsHeader& header, const std::shared_ptr<const ByteSource>& file,
                     const std::string& name, Use use, const std::string& place) {
  const auto found = std::find_if(header.tensors.begin(), header.tensors.end(),
                                  [&](const TensorPlace& tensor) { return tensor.name == name; });
  if (found == header.tensors.end()) {
    std::vector<std::string> names;
    for (const TensorPlace& tensor : header.tensors) names.push_back(tensor.name);
    fail_at(place, fmt::format("found no array '{}'{}", printable(name), suggestion(name, names)));
  }
  const auto type = kTypes.find(found->dtype);
  if (type == kTypes.end()) {
    const bool complex = found->dtype.starts_with('C');
    fail_at(place,
            fmt::format("{}: found {}, wanted {}", printable(name),
                        complex ? "complex numbers (" + found->dtype + ")" : "numbers of type " + found->dtype,
                        complex ? "real ones: store the parts as [..., 2]" : "a type of 16 bits or more, or integers"));
  }
  NumberLayout layout{type->second, false, false, found->shape, 0};
  layout.elements = (found->end - found->begin) / layout.type.width;
  return read_numbers(layout, file, found->begin, use, place + ": " + printable(name));
}

FileData read_tensors(const fs::path& path, const DataSource& source, const Uses& uses, const DataFiles& files,
                      const std::string& place) {
  const std::shared_ptr<const ByteSource> file = files.open(path, place);
  const SafetensorsHeader header = read_header(*file, place);
  return from_named_arrays(source, uses, place,
                           [&](const std::string& name, Use use) { return array_of(header, file, name, use, place); });
}

}  // namespace

const DataReader kSafetensors = {".safetensors", DataKeys::kNames,
                                 [](const fs::path& path) { return lower_extension(path) == ".safetensors"; },
                                 read_tensors};

}  // namespace hfta::fusion
