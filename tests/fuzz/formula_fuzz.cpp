// Formulas: any text is one, or an Error{kConfig}. What is read is read again as the same, and in parentheses has the
// same value.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <string>

#include "base/error.hpp"
#include "base/formula.hpp"

namespace {

using hfta::Formula;

void require(bool holds) {
  if (!holds) std::abort();
}

std::optional<Formula> parsed(const std::string& text) {
  try {
    return Formula::parse(text);
  } catch (const hfta::Error& error) {
    if (error.kind() != hfta::ErrorKind::kConfig) throw;
    require(std::strlen(error.what()) < 1000);
    return std::nullopt;
  }
}

// A number that differs between terms.
double value_of(const Formula& formula) {
  return formula.value([](const Formula::Term& term) {
    double value = term.mean ? -0.5 : 1.25;
    for (const char c : term.name) value = 3 * value + static_cast<unsigned char>(c) % 7 - 3;
    return value;
  });
}

bool same(double a, double b) { return a == b || (a != a && b != b); }

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  const std::optional<Formula> formula = parsed(text);
  if (!formula) return 0;
  require(formula->text() == text);
  const auto& terms = formula->terms();
  for (std::size_t i = 0; i < terms.size(); ++i) {
    require(!terms[i].name.empty());
    if (i > 0) require(!(terms[i] == terms[i - 1]));
  }
  const double value = value_of(*formula);
  require(same(value, value_of(*parsed(text))));
  // One more level may be one too many.
  if (const auto inside = parsed(" ( " + text + " ) ")) require(same(value, value_of(*inside)));
  if (const auto negative = parsed("-(" + text + ")")) require(same(-value, value_of(*negative)));
  return 0;
}
