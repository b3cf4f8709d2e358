#include "fusion/pt2/weights.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

namespace hfta::fusion::pt2 {
namespace {

// Tensors may share or repeat what is stored (an expanded mask), but not without end.
constexpr std::uint64_t kMostRepeated = 8;
constexpr std::uint64_t kAlwaysAllowed = std::uint64_t{1} << 20;
constexpr std::uint64_t kMostElements = std::uint64_t{1} << 40;

/// One entry of the config, its numbers checked.
struct Entry {
  std::string name;
  std::string place;
  DType dtype = DType::kFloat32;
  Shape sizes;
  Shape strides;
  std::int64_t offset = 0;
  bool requires_grad = false;
  std::uint64_t bytes = 0;    ///< Size of the contiguous tensor.
  std::uint64_t reaches = 0;  ///< Elements of the storage up to its last one.
};

std::int64_t known_size(const SymInt& size, const std::string& place, const char* what) {
  if (!size.expression.empty() || size.number < 0) {
    fail(place, fmt::format("found a {} of {}, wanted a number from 0 on", what,
                            size.expression.empty() ? std::to_string(size.number) : size.expression));
  }
  return size.number;
}

std::uint64_t checked(bool overflow, std::uint64_t value, const std::string& place) {
  if (overflow) fail(place, "found sizes beyond what a machine can address");
  return value;
}

std::uint64_t product(std::uint64_t a, std::uint64_t b, const std::string& place) {
  std::uint64_t out = 0;
  const bool overflow = __builtin_mul_overflow(a, b, &out);
  return checked(overflow, out, place);
}

std::uint64_t sum(std::uint64_t a, std::uint64_t b, const std::string& place) {
  std::uint64_t out = 0;
  const bool overflow = __builtin_add_overflow(a, b, &out);
  return checked(overflow, out, place);
}

Entry entry_from(const std::string& name, const Reader& json) {
  const TensorMeta meta = tensor_meta_from(json["tensor_meta"]);
  Entry entry;
  entry.name = name;
  entry.place = json.place();
  entry.dtype = meta.dtype;
  entry.requires_grad = meta.requires_grad;
  entry.offset = known_size(meta.offset, entry.place, "storage offset");
  std::uint64_t elements = 1;
  std::uint64_t largest = 1;  // as if no size were zero: others count on products of sizes
  std::uint64_t last = static_cast<std::uint64_t>(entry.offset);
  for (std::size_t i = 0; i < meta.sizes.size(); ++i) {
    entry.sizes.push_back(known_size(meta.sizes[i], entry.place, "size"));
    entry.strides.push_back(known_size(meta.strides[i], entry.place, "stride"));
    const auto size = static_cast<std::uint64_t>(entry.sizes.back());
    elements = product(elements, size, entry.place);
    largest = product(largest, std::max<std::uint64_t>(size, 1), entry.place);
    if (size == 0) continue;
    last = sum(last, product(size - 1, static_cast<std::uint64_t>(entry.strides.back()), entry.place), entry.place);
  }
  if (largest > kMostElements) fail(entry.place, "found sizes beyond what a machine can address");
  entry.bytes = product(elements, static_cast<std::uint64_t>(fusion::size_of(entry.dtype)), entry.place);
  entry.reaches = elements == 0 ? 0 : sum(last, 1, entry.place);
  return entry;
}

bool is_contiguous(const Entry& entry) {
  std::int64_t stride = 1;
  for (std::size_t i = entry.sizes.size(); i-- > 0;) {
    if (entry.sizes[i] != 1 && entry.strides[i] != stride) return false;
    stride *= entry.sizes[i];
  }
  return true;
}

// Copies element by element in row-major order: an odometer over all dimensions.
void gather(const Entry& entry, const std::vector<std::byte>& storage, std::vector<std::byte>& out) {
  const auto width = static_cast<std::size_t>(fusion::size_of(entry.dtype));
  std::vector<std::int64_t> at(entry.sizes.size(), 0);
  std::int64_t from = entry.offset;
  for (std::size_t to = 0; to < out.size(); to += width) {
    std::memcpy(out.data() + to, storage.data() + static_cast<std::size_t>(from) * width, width);
    for (std::size_t d = at.size(); d-- > 0;) {
      from += entry.strides[d];
      if (++at[d] < entry.sizes[d]) break;
      from -= entry.strides[d] * entry.sizes[d];
      at[d] = 0;
    }
  }
}

std::shared_ptr<const StoredTensor> tensor_of(const Entry& entry, std::vector<std::byte>& storage, bool last_use) {
  auto tensor = std::make_shared<StoredTensor>();
  tensor->shape = entry.sizes;
  tensor->dtype = entry.dtype;
  if (entry.bytes == 0) return tensor;
  const bool contiguous = is_contiguous(entry);
  if (contiguous && last_use && entry.offset == 0 && entry.bytes == storage.size()) {
    tensor->bytes = std::move(storage);
  } else if (contiguous) {
    tensor->bytes.resize(entry.bytes);
    const auto width = static_cast<std::size_t>(fusion::size_of(entry.dtype));
    std::memcpy(tensor->bytes.data(), storage.data() + static_cast<std::size_t>(entry.offset) * width, entry.bytes);
  } else {
    tensor->bytes.resize(entry.bytes);
    gather(entry, storage, tensor->bytes);
  }
  // A truth value has one of two bytes; what else a file holds there would be undefined.
  if (entry.dtype == DType::kBool) {
    for (std::byte& byte : tensor->bytes) byte = byte == std::byte{0} ? std::byte{0} : std::byte{1};
  }
  return tensor;
}

void check_reach(const Entry& entry, const Archive& archive, const std::string& member) {
  const std::uint64_t needed =
      product(entry.reaches, static_cast<std::uint64_t>(fusion::size_of(entry.dtype)), entry.place);
  const std::uint64_t stored = archive.size_of(member);
  if (needed <= stored) return;
  fail(entry.place, fmt::format("found {} bytes in {}, wanted {} for a tensor {} of {}{}", stored, member, needed,
                                to_text(entry.sizes), name_of(entry.dtype),
                                stored == 0 ? "; was it exported without data, under a fake tensor mode?" : ""));
}

using Groups = std::map<std::string, std::vector<Entry>>;

// By the member they are stored in, which is read once.
Groups grouped(const Archive& archive, const std::string& config) {
  const std::string place = archive.name() + ": " + config;
  const Json json = parse_json(archive.read(config), place);
  const std::string folder = config.substr(0, config.rfind('/') + 1);
  Groups groups;
  std::uint64_t total = 0;
  for (const auto& [name, entry_json] : Reader(json, place)["config"].members()) {
    if (entry_json["use_pickle"].boolean()) {
      entry_json.fail(
          "found a pickled tensor, which is never read: export the model with plain tensors as weights, "
          "not subclasses or script objects");
    }
    Entry entry = entry_from(name, entry_json);
    const std::string member = folder + entry_json["path_name"].text();
    check_reach(entry, archive, member);
    total = sum(total, entry.bytes, entry.place);
    groups[member].push_back(std::move(entry));
  }
  if (total > kAlwaysAllowed && total / kMostRepeated > archive.size()) {
    fail(place, fmt::format("found tensors of {} bytes in an archive of {}", total, archive.size()));
  }
  return groups;
}

}  // namespace

std::map<std::string, StoredWeight> read_weights(const Archive& archive, const std::string& config) {
  std::map<std::string, StoredWeight> weights;
  for (const auto& [member, entries] : grouped(archive, config)) {
    std::vector<std::byte> storage = archive.read(member);
    std::map<std::string, std::shared_ptr<const StoredTensor>> same;
    for (std::size_t i = 0; i < entries.size(); ++i) {
      const Entry& entry = entries[i];
      const std::string identity = fmt::format("{} {} {} {} {}", member, name_of(entry.dtype), entry.offset,
                                               fmt::join(entry.sizes, ","), fmt::join(entry.strides, ","));
      std::shared_ptr<const StoredTensor>& tensor = same[identity];
      if (tensor == nullptr) tensor = tensor_of(entry, storage, i + 1 == entries.size());
      weights[entry.name] = {tensor, entry.requires_grad, identity};
    }
  }
  return weights;
}

}  // namespace hfta::fusion::pt2
