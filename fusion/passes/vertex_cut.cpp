#include "fusion/passes/vertex_cut.hpp"

#include <algorithm>
#include <deque>
#include <limits>

namespace hfta::fusion {
namespace {

constexpr std::size_t kNone = std::numeric_limits<std::size_t>::max();

}  // namespace

// Vertex v is split into an entry 2v and an exit 2v + 1, joined by an edge of its price; then source and sink.
VertexCut::VertexCut(std::size_t vertices) : count_(vertices), of_(2 * vertices + 2), price_(vertices, kNever) {}

void VertexCut::price(std::size_t vertex, std::int64_t price) { price_[vertex] = price; }
void VertexCut::edge(std::size_t from, std::size_t to) { connect(2 * from + 1, 2 * to, kNever); }
void VertexCut::source(std::size_t vertex) { connect(2 * count_, 2 * vertex, kNever); }
void VertexCut::sink(std::size_t vertex) { connect(2 * vertex + 1, 2 * count_ + 1, kNever); }

void VertexCut::connect(std::size_t from, std::size_t to, std::int64_t capacity) {
  of_[from].push_back(edges_.size());
  edges_.push_back({to, capacity});
  of_[to].push_back(edges_.size());
  edges_.push_back({from, 0});
}

// The flow along a shortest path that has room, added; 0: there is none.
std::int64_t VertexCut::augment() {
  const std::size_t from = 2 * count_, to = from + 1;
  std::vector<std::size_t> came_by(of_.size(), kNone);
  std::deque<std::size_t> queue = {from};
  while (!queue.empty() && came_by[to] == kNone) {
    const std::size_t here = queue.front();
    queue.pop_front();
    for (const std::size_t e : of_[here]) {
      const Edge& edge = edges_[e];
      if (edge.left == 0 || edge.to == from || came_by[edge.to] != kNone) continue;
      came_by[edge.to] = e;
      queue.push_back(edge.to);
    }
  }
  if (came_by[to] == kNone) return 0;
  std::int64_t room = kNever;
  for (std::size_t v = to; v != from; v = edges_[came_by[v] ^ 1].to) room = std::min(room, edges_[came_by[v]].left);
  for (std::size_t v = to; v != from; v = edges_[came_by[v] ^ 1].to) {
    edges_[came_by[v]].left -= room;
    edges_[came_by[v] ^ 1].left += room;
  }
  return room;
}

std::vector<bool> VertexCut::cheapest() {
  for (std::size_t v = 0; v < count_; ++v) connect(2 * v, 2 * v + 1, price_[v]);
  for (std::int64_t flow = augment(); flow > 0; flow = augment()) {
    if (flow > kNever / 2) return {};  // less what other paths took of the same edges
  }
  // Vertices that still reach the sink: the cut lies right in front of them.
  std::vector<bool> reaches(of_.size(), false);
  std::deque<std::size_t> queue = {2 * count_ + 1};
  reaches[queue.front()] = true;
  while (!queue.empty()) {
    const std::size_t here = queue.front();
    queue.pop_front();
    for (const std::size_t e : of_[here]) {
      const std::size_t other = edges_[e].to;
      if (edges_[e ^ 1].left == 0 || reaches[other]) continue;
      reaches[other] = true;
      queue.push_back(other);
    }
  }
  std::vector<bool> cut(count_);
  for (std::size_t v = 0; v < count_; ++v) cut[v] = reaches[2 * v + 1] && !reaches[2 * v];
  return cut;
}

}  // namespace hfta::fusion
