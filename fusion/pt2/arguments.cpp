#include "fusion/pt2/arguments.hpp"

#include <fmt/format.h>

#include <array>
#include <string_view>
#include <utility>
#include <vector>

namespace hfta::fusion::pt2 {
namespace {

Arg none_arg(const Reader&, const ValueLookup&) { return std::monostate{}; }

Arg tensor_arg(const Reader& json, const ValueLookup& lookup) { return lookup(json["name"].text()); }

Arg tensors_arg(const Reader& json, const ValueLookup& lookup) {
  std::vector<ValueId> values;
  for (const Reader& item : json.list()) values.push_back(lookup(item["name"].text()));
  return values;
}

Arg optional_tensor_arg(const Reader& json, const ValueLookup& lookup) {
  const Tagged tagged = tagged_from(json);
  if (tagged.tag == "as_none") return std::monostate{};
  return tensor_arg(tagged.value, lookup);
}

Arg optional_tensors_arg(const Reader& json, const ValueLookup& lookup) {
  std::vector<ValueId> values;
  for (const Tagged& item : tagged_list_from(json)) {
    values.push_back(item.tag == "as_none" ? kNoValue : lookup(item.value["name"].text()));
  }
  return values;
}

Arg int_arg(const Reader& json, const ValueLookup&) { return json.integer(); }

Arg ints_arg(const Reader& json, const ValueLookup&) {
  std::vector<std::int64_t> numbers;
  for (const Reader& item : json.list()) numbers.push_back(item.integer());
  return numbers;
}

Arg float_arg(const Reader& json, const ValueLookup&) { return json.number(); }

Arg floats_arg(const Reader& json, const ValueLookup&) {
  std::vector<double> numbers;
  for (const Reader& item : json.list()) numbers.push_back(item.number());
  return numbers;
}

Arg complex_arg(const Reader& json, const ValueLookup&) {
  return Complex{json["real"].number(), json["imag"].number()};
}

Arg bool_arg(const Reader& json, const ValueLookup&) { return json.boolean(); }

Arg string_arg(const Reader& json, const ValueLookup&) { return json.text(); }

Arg symbol_arg(const Reader& json, const ValueLookup& lookup) {
  const Tagged tagged = tagged_from(json);
  if (tagged.tag == "as_name") return lookup(tagged.value.text());
  if (tagged.tag == "as_int") return tagged.value.integer();
  if (tagged.tag == "as_float") return tagged.value.number();
  return tagged.value.boolean();
}

Arg sizes_arg(const Reader& json, const ValueLookup& lookup) {
  std::vector<Size> sizes;
  for (const Tagged& item : tagged_list_from(json)) {
    const bool named = item.tag == "as_name";
    sizes.push_back(named ? Size{0, lookup(item.value.text())} : Size{item.value.integer(), kNoValue});
  }
  return sizes;
}

Arg dtype_arg(const Reader& json, const ValueLookup&) { return dtype_from(json); }

// The schema counts memory formats otherwise than ATen does.
Arg memory_format_arg(const Reader& json, const ValueLookup&) {
  constexpr std::array<std::int64_t, 5> kAten = {-1, 0, 2, 3, 1};
  const std::int64_t format = json.integer();
  const bool known = format > 0 && format < static_cast<std::int64_t>(kAten.size());
  if (!known) json.fail(fmt::format("found memory format {}, wanted 1 to 4", format));
  return kAten[static_cast<std::size_t>(format)];
}

Arg layout_arg(const Reader& json, const ValueLookup&) {
  constexpr std::int64_t kStrided = 7;
  if (json.integer() != kStrided) json.fail("found a sparse layout, wanted dense tensors");
  return std::monostate{};
}

Arg device_arg(const Reader&, const ValueLookup&) { return ArrayDevice{}; }

using Convert = Arg (*)(const Reader&, const ValueLookup&);

constexpr std::array<std::pair<std::string_view, Convert>, 20> kKinds = {{
    {"as_none", none_arg},
    {"as_tensor", tensor_arg},
    {"as_tensors", tensors_arg},
    {"as_optional_tensor", optional_tensor_arg},
    {"as_optional_tensors", optional_tensors_arg},
    {"as_int", int_arg},
    {"as_ints", ints_arg},
    {"as_float", float_arg},
    {"as_floats", floats_arg},
    {"as_complex", complex_arg},
    {"as_bool", bool_arg},
    {"as_string", string_arg},
    {"as_sym_int", symbol_arg},
    {"as_sym_float", symbol_arg},
    {"as_sym_bool", symbol_arg},
    {"as_sym_ints", sizes_arg},
    {"as_scalar_type", dtype_arg},
    {"as_memory_format", memory_format_arg},
    {"as_layout", layout_arg},
    {"as_device", device_arg},
}};

}  // namespace

Arg arg_from(const Tagged& argument, const ValueLookup& lookup) {
  for (const auto& [tag, convert] : kKinds) {
    if (tag == argument.tag) return convert(argument.value, lookup);
  }
  argument.value.fail(fmt::format("found an argument of kind '{}', which cannot be trained fused", argument.tag));
}

}  // namespace hfta::fusion::pt2
