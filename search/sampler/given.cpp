#include "search/sampler/given.hpp"

#include <algorithm>

#include "trials/space.hpp"

namespace hfta::search {

trials::Params with_given(trials::Params params, const trials::Params& given) {
  if (given.empty()) return params;
  for (auto& [name, value] : params) {
    if (const trials::ParamValue* other = trials::find_value(given, name)) value = *other;
  }
  return params;
}

bool has_given(const trials::Params& params, const trials::Params& given) {
  return std::all_of(given.begin(), given.end(), [&](const auto& one) {
    const trials::ParamValue* value = trials::find_value(params, one.first);
    return value != nullptr && *value == one.second;
  });
}

}  // namespace hfta::search
