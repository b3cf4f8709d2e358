// Data in safetensors files: arrays by name.

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>

#include "base/error.hpp"
#include "base/text.hpp"
#include "fusion/data/readers.hpp"
#include "fusion/data/safetensors.hpp"

namespace hfta::fusion {
namespace {

namespace fs = std::filesystem;

struct Type {
  char kind;
  std::size_t width;
};
const std::map<std::string, Type> kTypes = {{"F64", {'f', 8}}, {"F32", {'f', 4}}, {"F16", {'f', 2}}, {"BF16", {'B', 2}},
                                            {"I64", {'i', 8}}, {"I32", {'i', 4}}, {"I16", {'i', 2}}, {"I8", {'i', 1}},
                                            {"U64", {'u', 8}}, {"U32", {'u', 4}}, {"U16", {'u', 2}}, {"U8", {'u', 1}},
                                            {"BOOL", {'b', 1}}};

SafetensorsFile parse(std::span<const std::byte> bytes, const std::string& place) {
  try {
    return parse_safetensors(bytes);
  } catch (const Error& error) {
    fail_at(place, error.what());
  }
}

StoredArray array_of(const SafetensorsFile& file, const std::string& name, Use use, const std::string& place) {
  const auto found = std::find_if(file.tensors.begin(), file.tensors.end(),
                                  [&](const TensorView& tensor) { return tensor.name == name; });
  if (found == file.tensors.end()) {
    std::vector<std::string> names;
    for (const TensorView& tensor : file.tensors) names.push_back(tensor.name);
    fail_at(place, fmt::format("found no array '{}'{}", printable(name), suggestion(name, names)));
  }
  const Type type = kTypes.at(found->dtype);  // parse_safetensors knows no others
  NumberLayout layout{type.kind, type.width, false, false, found->shape, 0};
  layout.elements = found->bytes.size() / layout.width;
  return read_numbers(layout, found->bytes, use, place + ": " + printable(name));
}

Dataset read_tensors(const fs::path& path, const DataSource& source, const Uses& uses, const std::string& place) {
  const std::vector<std::byte> bytes = read_bytes(path, place);
  const SafetensorsFile file = parse(bytes, place);
  return from_named_arrays(source, uses, place,
                           [&](const std::string& name, Use use) { return array_of(file, name, use, place); });
}

}  // namespace

const DataReader kSafetensors = {".safetensors", DataKeys::kNames,
                                 [](const fs::path& path) { return lower_extension(path) == ".safetensors"; },
                                 read_tensors};

}  // namespace hfta::fusion
