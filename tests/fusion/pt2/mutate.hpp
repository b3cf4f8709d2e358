#pragma once
// Exported models with a meaning changed: still JSON, still the schema's fields, but other types, names, sizes, kinds
// and orders than torch.export writes.

#include <cstdint>
#include <string>
#include <vector>

#include "base/random.hpp"
#include "pt2_text.hpp"

namespace hfta::fusion::test {

/// Changes one to three things in models/model.json or the weights' config; returns what, in words: "exchanged the
/// arguments of aten.conv2d.default and aten.linear.default". Members that hold no such JSON stay as they are.
std::string mutate(std::vector<Member>& members, CountedRandom& random);

}  // namespace hfta::fusion::test
