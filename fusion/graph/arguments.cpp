#include "fusion/graph/arguments.hpp"

#include <fmt/format.h>

#include <array>
#include <utility>

#include "fusion/graph/place.hpp"

namespace hfta::fusion {

ArgumentError::ArgumentError(const Node& node, std::string what)
    : Error(ErrorKind::kConfig, place_of(node) + ": " + what), text_(std::move(what)) {}

std::string_view kind_of(const Arg& arg) {
  constexpr std::array<std::string_view, std::variant_size_v<Arg>> kKinds = {"None",
                                                                             "a value",
                                                                             "a list of values",
                                                                             "an integer",
                                                                             "a real number",
                                                                             "a truth value",
                                                                             "a list of integers",
                                                                             "a parameter of the search",
                                                                             "a word",
                                                                             "a list of real numbers",
                                                                             "a list of sizes",
                                                                             "a dtype",
                                                                             "a device",
                                                                             "a complex number"};
  return kKinds[arg.index()];
}

const Arg& argument_at(const Node& node, std::size_t i) {
  if (i < node.args.size()) return node.args[i];
  throw ArgumentError(node,
                      fmt::format("found {} arguments, wanted argument {} (they count from 0)", node.args.size(), i));
}

ValueId output_at(const Node& node, std::size_t o) {
  if (o < node.outputs.size()) return node.outputs[o];
  throw ArgumentError(node,
                      fmt::format("found {} outputs, wanted output {} (they count from 0)", node.outputs.size(), o));
}

}  // namespace hfta::fusion
