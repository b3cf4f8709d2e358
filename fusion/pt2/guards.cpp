#include "fusion/pt2/guards.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <optional>
#include <string_view>

#include "base/error.hpp"
#include "fusion/graph/condition.hpp"

namespace hfta::fusion::pt2 {
namespace {

constexpr std::size_t kLongest = 10'000;
constexpr std::string_view kSize = ".size()[";

/// The size of an input that `text` names at its beginning: L['x'].size()[0], L['args'][1].size()[2].
struct Source {
  std::string input;  ///< Name of the input's placeholder: "x", "args_1".
  std::size_t dim = 0;
  std::size_t length = 0;  ///< Length of the text that says so.
};

std::optional<Source> source_at(std::string_view text) {
  Source source;
  std::size_t at = 1;
  while (at < text.size() && text[at] == '[') {
    const std::size_t end = text.find(']', at);
    if (end == std::string_view::npos) return std::nullopt;
    if (!source.input.empty()) source.input += '_';
    for (const char c : text.substr(at + 1, end - at - 1)) {
      if (c != '\'' && c != '"') source.input += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    }
    at = end + 1;
  }
  if (!text.substr(at).starts_with(kSize)) return std::nullopt;
  at += kSize.size();
  const auto [end, error] = std::from_chars(text.data() + at, text.data() + text.size(), source.dim);
  if (error != std::errc() || end == text.data() + text.size() || *end != ']') return std::nullopt;
  source.length = static_cast<std::size_t>(end - text.data()) + 1;
  return source;
}

/// The size as a condition names it: "N", "(2*N)", "9".
std::optional<std::string> size_of(const Source& source, const Batch& batch) {
  if (source.dim == 0) return "N";  // dimension 0 of every input
  const auto input = std::find_if(batch.inputs.begin(), batch.inputs.end(),
                                  [&](const ExportedTensor& tensor) { return tensor.name == source.input; });
  if (input == batch.inputs.end() || source.dim >= input->shape.size()) return std::nullopt;
  const std::int64_t size = input->shape[source.dim];
  return size < 0 ? fmt::format("({}*N)", -size) : std::to_string(size);
}

std::optional<std::string> in_terms_of_n(std::string_view guard, const Batch& batch) {
  std::string out;
  while (!guard.empty()) {
    std::size_t taken = 1;
    if (guard.starts_with("L[")) {
      const std::optional<Source> source = source_at(guard);
      const std::optional<std::string> size = source ? size_of(*source, batch) : std::nullopt;
      if (!size) return std::nullopt;
      out += *size;
      taken = source->length;
    } else {
      out += guard.front();
    }
    guard.remove_prefix(taken);
  }
  return out;
}

/// Whether it can be told for which batches it holds.
bool understood(const std::string& condition) {
  try {
    static_cast<void>(holds(condition, 1));
    static_cast<void>(holds(condition, 64));
    return true;
  } catch (const Error&) {
    return false;
  }
}

}  // namespace

std::vector<std::string> guards_from(const Reader& program, const Batch& batch) {
  std::vector<std::string> conditions;
  if (batch.fixed > 0 || !program.has("guards_code")) return conditions;
  for (const Reader& guard : program["guards_code"].list()) {
    const std::string& text = guard.text();
    const std::optional<std::string> condition = text.size() <= kLongest ? in_terms_of_n(text, batch) : std::nullopt;
    if (!condition || !understood(*condition)) {
      program.fail(
          fmt::format("was exported under the condition '{}', of which nothing is known here; export it with "
                      "another dynamic_shapes, or at a fixed batch size",
                      text.substr(0, 200)));
    }
    if (condition->find('N') != std::string::npos) conditions.push_back(*condition);
  }
  return conditions;
}

}  // namespace hfta::fusion::pt2
