#include "fusion/data/tokens.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <vector>

#include "base/text.hpp"
#include "fusion/data/file_bytes.hpp"
#include "fusion/data/readers.hpp"

namespace hfta::fusion {
namespace {

struct Type {
  const char* name;
  NumberType type;
};
constexpr Type kTypes[] = {
    {"uint16", {'u', 2}}, {"uint8", {'u', 1}}, {"uint32", {'u', 4}}, {"int32", {'i', 4}}, {"int64", {'i', 8}}};

NumberType type_named(const std::string& name, const std::string& place) {
  for (const Type& type : kTypes) {
    if (name == type.name) return type.type;
  }
  fail_at(place, fmt::format("dtype: found '{}', wanted a type of tokens{}", printable(name),
                             suggestion(name, token_types())));
}

FileData read_windows(const std::filesystem::path& path, const DataSource& source, const Uses& uses,
                      const DataFiles& files, const std::string& place) {
  return token_windows(files.open(path, place), source, uses, place);
}

}  // namespace

const std::vector<std::string>& token_types() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> all;
    for (const Type& type : kTypes) all.emplace_back(type.name);
    return all;
  }();
  return names;
}

Dataset token_windows(const std::shared_ptr<const ByteSource>& file, const DataSource& source, const Uses& uses,
                      const std::string& place) {
  const std::int64_t window = source.window;
  const std::int64_t step = source.stride > 0 ? source.stride : window;
  if (window < 1) {
    fail_at(place,
            "window: found nothing, wanted how many tokens a sample has: a .bin file is read as raw tokens, unless it "
            "is one of CIFAR's (data_batch_1.bin to data_batch_5.bin, test_batch.bin; train.bin and test.bin beside "
            "fine_label_names.txt)");
  }
  const NumberType type = source.dtype.empty() ? kTypes[0].type : type_named(source.dtype, place);
  if (file->size() % type.width != 0) {
    fail_at(place, fmt::format("found {} bytes, wanted tokens of {} bytes each", file->size(), type.width));
  }
  const auto tokens = static_cast<std::int64_t>(file->size() / type.width);
  if (tokens <= window) {
    fail_at(place, fmt::format("found {} tokens, wanted more than the {} of a window: one more is the last target",
                               tokens, window));
  }
  const std::int64_t samples = (tokens - 1 - window) / step + 1;
  const NumberLayout layout{type, false, false, {tokens}, static_cast<std::size_t>(tokens)};
  Dataset data = from_arrays({"x"}, "y", uses, place, [&](const std::string& name, Use use) {
    StoredArray array = read_numbers(layout, file, 0, use, place);
    array.shape = {samples, window};
    array.rows = {name == "y" ? 1 : 0, step, nullptr};
    return array;
  });
  data.overlap = (window + step - 1) / step;
  return data;
}

const DataReader kTokens = {".bin (raw tokens)", DataKeys::kTokens,
                            [](const std::filesystem::path& path) { return lower_extension(path) == ".bin"; },
                            read_windows};

}  // namespace hfta::fusion
