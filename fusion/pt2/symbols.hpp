#pragma once
/// Symbolic sizes: which symbol is the batch, and what an expression is for a batch of N.

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "fusion/graph.hpp"
#include "fusion/pt2/schema.hpp"

namespace hfta::fusion::pt2 {

/// The symbol that an expression consists of alone; "": it is more than that.
[[nodiscard]] std::string lone_symbol(const std::string& expression);
/// The first symbol that stands for a number which depends on data ("u0"); "": none.
[[nodiscard]] std::string data_dependent_symbol(const std::string& expression);

class Symbols {
 public:
  /// The symbol stands for N.
  void add_batch(const std::string& symbol) { batch_.insert(symbol); }
  /// The symbol's value at export, for sizes that cannot be said in N alone.
  void add_hint(const std::string& symbol, std::int64_t value) { hints_.try_emplace(symbol, value); }
  /// The size as Value::shape has it: the number, -k for k*N, or the value at export.
  [[nodiscard]] std::int64_t size(const SymInt& size) const;
  /// Throws Error{kConfig} at `json`'s place: negative sizes, and products beyond what a machine can address.
  [[nodiscard]] Shape shape(const std::vector<SymInt>& sizes, const Reader& json) const;

 private:
  [[nodiscard]] std::optional<std::int64_t> evaluate(const std::string& expression, std::int64_t n) const;

  std::set<std::string> batch_;
  std::map<std::string, std::int64_t> hints_;
};

}  // namespace hfta::fusion::pt2
