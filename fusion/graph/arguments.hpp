#pragma once
/// A call's arguments and outputs, read with checks: calls come from files, and their arguments may be of any number
/// and kind. Internal to fusion.

#include <cstddef>
#include <string>
#include <string_view>
#include <variant>

#include "base/error.hpp"
#include "fusion/graph.hpp"

namespace hfta::fusion {

/// A call whose arguments or outputs are not those of its op. Kind kConfig; what() begins with place_of() the call.
class ArgumentError : public Error {
 public:
  ArgumentError(const Node& node, std::string what);
  /// what() without the place.
  [[nodiscard]] const std::string& text() const { return text_; }

 private:
  std::string text_;
};

/// What the argument is, in words: "a value", "a list of integers".
[[nodiscard]] std::string_view kind_of(const Arg& arg);

/// Argument i. Throws ArgumentError if the call has fewer.
[[nodiscard]] const Arg& argument_at(const Node& node, std::size_t i);

/// Argument i if the call has it and it is of this kind; null otherwise.
template <typename T>
[[nodiscard]] const T* argument_if(const Node& node, std::size_t i) {
  return i < node.args.size() ? std::get_if<T>(&node.args[i]) : nullptr;
}

/// `arg`, an argument of the call that messages name `name`. Throws ArgumentError if it is of another kind.
template <typename T>
[[nodiscard]] const T& argument_as(const Node& node, const Arg& arg, std::string_view name) {
  if (const auto* own = std::get_if<T>(&arg)) return *own;
  throw ArgumentError(node, "argument " + std::string(name) + ": found " + std::string(kind_of(arg)) + ", wanted " +
                                std::string(kind_of(Arg(T{}))));
}

/// Argument i. Throws ArgumentError if the call has fewer, or if it is of another kind.
template <typename T>
[[nodiscard]] const T& argument_as(const Node& node, std::size_t i) {
  return argument_as<T>(node, argument_at(node, i), std::to_string(i));
}

/// Output `o`, which may be kNoValue. Throws ArgumentError if the call has fewer.
[[nodiscard]] ValueId output_at(const Node& node, std::size_t o);

/// The first output; kNoValue if nothing reads it, or the call has none.
[[nodiscard]] inline ValueId first_output(const Node& node) {
  return node.outputs.empty() ? kNoValue : node.outputs.front();
}

}  // namespace hfta::fusion
