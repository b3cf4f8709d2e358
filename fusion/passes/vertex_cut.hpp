#pragma once
/// The cheapest set of vertices that separates sources from sinks.

#include <cstdint>
#include <vector>

namespace hfta::fusion {

/// A directed graph whose vertices have prices.
class VertexCut {
 public:
  /// The price of a vertex that must not be in the cut; those of all others together are below half of it.
  static constexpr std::int64_t kNever = INT64_MAX / 4;

  explicit VertexCut(std::size_t vertices);
  void price(std::size_t vertex, std::int64_t price);
  void edge(std::size_t from, std::size_t to);
  void source(std::size_t vertex);
  void sink(std::size_t vertex);

  /// By vertex: whether it is in the cheapest cut, of which the one closest to the sinks is taken. Empty: every cut has
  /// a vertex that must not be in it. By augmenting paths (Edmonds and Karp, J. ACM 19(2), 1972).
  [[nodiscard]] std::vector<bool> cheapest();

 private:
  struct Edge {
    std::size_t to;
    std::int64_t left;  // capacity that no flow uses yet
  };
  void connect(std::size_t from, std::size_t to, std::int64_t capacity);
  [[nodiscard]] std::int64_t augment();

  std::size_t count_;
  std::vector<Edge> edges_;  // each is followed by its reverse
  std::vector<std::vector<std::size_t>> of_;
  std::vector<std::int64_t> price_;
};

}  // namespace hfta::fusion
