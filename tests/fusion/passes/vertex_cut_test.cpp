// The cheapest cut, against all cuts of small graphs.
#include "fusion/passes/vertex_cut.hpp"

#include <catch2/catch.hpp>

#include "base/random.hpp"

namespace hfta::fusion {
namespace {

struct Problem {
  std::size_t count = 0;
  std::vector<std::int64_t> price;
  std::vector<std::pair<std::size_t, std::size_t>> edges;
  std::vector<std::size_t> sources, sinks;
};

Problem random_problem(std::uint64_t seed) {
  CountedRandom random(seed, Stream::kSimulation, 0);
  Problem p;
  p.count = 2 + random.below(7);
  for (std::size_t v = 0; v < p.count; ++v) {
    p.price.push_back(random.below(5) == 0 ? VertexCut::kNever : 1 + static_cast<std::int64_t>(random.below(9)));
    for (std::size_t w = v + 1; w < p.count; ++w) {
      if (random.below(3) == 0) p.edges.emplace_back(v, w);
    }
  }
  p.sources = {0};
  if (random.below(2) == 0) p.sources.push_back(random.below(p.count));
  p.sinks = {p.count - 1, random.below(p.count)};
  return p;
}

bool separates(const Problem& p, std::size_t cut) {
  const auto in = [&](std::size_t v) { return (cut >> v & 1) != 0; };
  std::vector<bool> reached(p.count, false);
  for (const std::size_t v : p.sources) reached[v] = !in(v);
  for (const auto& [from, to] : p.edges) {  // in order of vertices
    if (reached[from] && !in(to)) reached[to] = true;
  }
  for (const std::size_t v : p.sinks) {
    if (reached[v]) return false;
  }
  return true;
}

// 0: none without a vertex that must not be cut.
std::int64_t price_of(const Problem& p, std::size_t cut) {
  std::int64_t price = 0;
  for (std::size_t v = 0; v < p.count; ++v) {
    if ((cut >> v & 1) == 0) continue;
    if (p.price[v] == VertexCut::kNever) return VertexCut::kNever;
    price += p.price[v];
  }
  return price;
}

std::int64_t cheapest_of_all(const Problem& p) {
  std::int64_t best = VertexCut::kNever;
  for (std::size_t cut = 0; cut < std::size_t{1} << p.count; ++cut) {
    if (separates(p, cut)) best = std::min(best, price_of(p, cut));
  }
  return best;
}

VertexCut cut_of(const Problem& p) {
  VertexCut cut(p.count);
  for (std::size_t v = 0; v < p.count; ++v) cut.price(v, p.price[v]);
  for (const auto& [from, to] : p.edges) cut.edge(from, to);
  for (const std::size_t v : p.sources) cut.source(v);
  for (const std::size_t v : p.sinks) cut.sink(v);
  return cut;
}

}  // namespace

TEST_CASE("the cut that is found separates, and none is cheaper") {
  int impossible = 0, paid = 0;
  for (std::uint64_t seed = 0; seed < 500; ++seed) {
    const Problem p = random_problem(seed);
    const std::vector<bool> found = cut_of(p).cheapest();
    const std::int64_t best = cheapest_of_all(p);
    CAPTURE(seed);
    if (best == VertexCut::kNever) {
      CHECK(found.empty());
      ++impossible;
      continue;
    }
    REQUIRE(found.size() == p.count);
    std::size_t cut = 0;
    for (std::size_t v = 0; v < p.count; ++v) cut |= static_cast<std::size_t>(found[v]) << v;
    CHECK(separates(p, cut));
    CHECK(price_of(p, cut) == best);
    paid += best > 0 ? 1 : 0;
  }
  CHECK(impossible > 20);
  CHECK(paid > 100);
}

TEST_CASE("of cuts that cost the same the one closest to the sinks is taken") {
  VertexCut cut(3);
  for (std::size_t v = 0; v < 3; ++v) cut.price(v, 4);
  cut.edge(0, 1);
  cut.edge(1, 2);
  cut.source(0);
  cut.sink(2);
  CHECK(cut.cheapest() == std::vector<bool>{false, false, true});
}

}  // namespace hfta::fusion
