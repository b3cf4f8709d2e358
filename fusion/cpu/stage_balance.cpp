// Cuts a graph into stages by estimates of the time that its calls take, from the sizes that it says its values have.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <map>
#include <set>
#include <string_view>
#include <utility>

#include "base/error.hpp"
#include "fusion/cpu/stages.hpp"
#include "fusion/graph/uses.hpp"

namespace hfta::fusion::cpu {
namespace {

// Seconds on some core of today; only their ratios matter.
constexpr double kOfProduct = 1 / 25e9;  // a multiplication and an addition
constexpr double kOfByte = 1 / 10e9;     // seconds for a byte of memory read or written
constexpr double kOfSentByte = 1 / 2e9;  // seconds for a byte that travels to another process
constexpr double kPasses = 3;            // forward; backward for inputs, and for weights

class Estimate {
 public:
  Estimate(const Graph& graph, std::int64_t n) : graph_(graph), n_(n), makers_(makers_of(graph)) {
    for (const Weight& weight : graph.weights) weights_[weight.value] = &weight;
    for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
      for (const ValueId id : inputs_of(graph.nodes[i])) last_reader_[id] = i;
    }
  }

  [[nodiscard]] double seconds(const Node& node) const {
    double all = kOfProduct * products(node);
    for (const ValueId id : node.outputs) all += id == kNoValue ? 0 : kOfByte * bytes(id);
    for (const ValueId id : inputs_of(node)) all += kOfByte * bytes(id);
    return kPasses * all;
  }

  /// Time to send what is made before the node and read by it or behind it; forward, and back as gradients.
  [[nodiscard]] double seconds_to_send(std::size_t node) const {
    double all = 0;
    for (const auto& [id, reader] : last_reader_) {
      const std::size_t maker = makers_[static_cast<std::size_t>(id)];
      if (maker != kNobody && maker < node && reader >= node) all += 2 * kOfSentByte * bytes(id);
    }
    return all;
  }

 private:
  [[nodiscard]] double elements(ValueId id) const {
    const Value& value = graph_.values[static_cast<std::size_t>(id)];
    if (value.number) return 0;
    double all = 1;
    for (const std::int64_t size : value.shape)
      all *= size < 0 ? static_cast<double>(-size * n_) : static_cast<double>(size);
    return all;
  }
  [[nodiscard]] double bytes(ValueId id) const {
    return elements(id) * static_cast<double>(size_of(graph_.values[static_cast<std::size_t>(id)].dtype));
  }

  [[nodiscard]] double products(const Node& node) const {
    static constexpr std::array<std::string_view, 6> kOfTwo = {"aten::mm",    "aten::bmm",     "aten::matmul",
                                                               "aten::addmm", "aten::baddbmm", "aten::addbmm"};
    if (node.outputs.empty() || node.outputs.front() == kNoValue || node.op.starts_with("aten::embedding")) return 0;
    const double out = elements(node.outputs.front());
    const std::vector<ValueId> read = inputs_of(node);
    double all = 0;
    for (const ValueId id : read) {
      const auto weight = weights_.find(id);
      if (weight == weights_.end() || weight->second->shape.size() < 2) continue;
      all += out * elements(id) / static_cast<double>(std::max<std::int64_t>(1, weight->second->shape.front()));
    }
    if (all > 0 || read.empty()) return all;
    const Shape& first = graph_.values[static_cast<std::size_t>(read.back())].shape;
    if (std::find(kOfTwo.begin(), kOfTwo.end(), node.op) != kOfTwo.end() && first.size() >= 2) {
      return out * elements(read.back()) / std::max(1.0, elements_of_columns(first));
    }
    if (node.op == "aten::scaled_dot_product_attention" && first.size() >= 2) return 2 * out * length(first);
    return 0;
  }

  // Batches and columns of a product's second factor: the rest of its elements are its rows.
  [[nodiscard]] double elements_of_columns(const Shape& shape) const {
    double all = 1;
    for (std::size_t d = 0; d < shape.size(); ++d) all *= d + 2 == shape.size() ? 1 : size_in(shape[d]);
    return all;
  }
  [[nodiscard]] double length(const Shape& shape) const { return size_in(shape[shape.size() - 2]); }
  [[nodiscard]] double size_in(std::int64_t size) const { return static_cast<double>(size < 0 ? -size * n_ : size); }

  const Graph& graph_;
  std::int64_t n_;
  std::vector<std::size_t> makers_;
  std::map<ValueId, const Weight*> weights_;
  std::map<ValueId, std::size_t> last_reader_;
};

// By weight that lies in a stage: the first call that reads it.
std::map<std::size_t, std::size_t> first_readers(const Graph& graph, const std::vector<bool>& owned) {
  std::map<ValueId, std::size_t> places;
  for (std::size_t w = 0; w < graph.weights.size(); ++w) {
    if (owned[w]) places[graph.weights[w].value] = w;
  }
  std::map<std::size_t, std::size_t> first;
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    for (const ValueId id : inputs_of(graph.nodes[i])) {
      if (const auto place = places.find(id); place != places.end()) first.try_emplace(place->second, i);
    }
  }
  return first;
}

// Positions of the cuts, one less than stages, among `places`: those with which the slowest stage takes least. What a
// stage takes is `compute` of its calls, summed from the graph's begin on, and what it sends and is sent.
std::vector<std::size_t> best_cuts(const std::vector<std::size_t>& places, const std::vector<double>& compute,
                                   const std::vector<double>& send, int stages) {
  struct Best {
    double seconds = std::numeric_limits<double>::infinity();
    std::size_t before = 0;
  };
  const std::size_t end = places.size();  // stands for the graph's end
  const auto sum_to = [&](std::size_t p) { return p == end ? compute.back() : compute[places[p]]; };
  const auto sent_at = [&](std::size_t p) { return p == end || p == 0 ? 0 : send[p]; };
  std::vector<std::vector<Best>> best(static_cast<std::size_t>(stages), std::vector<Best>(end + 1));
  for (std::size_t s = 0; s < best.size(); ++s) {
    for (std::size_t p = s + 1; p <= end; ++p) {
      // The first stage begins with the graph, whatever stands before the first place.
      if (s == 0) best[s][p] = {sum_to(p) + sent_at(p), 0};
      for (std::size_t q = s; s > 0 && q < p; ++q) {
        const double own = sum_to(p) - sum_to(q) + sent_at(q) + sent_at(p);
        const double all = std::max(best[s - 1][q].seconds, own);
        if (all < best[s][p].seconds) best[s][p] = {all, q};
      }
    }
  }
  std::vector<std::size_t> cuts;
  std::size_t p = end;
  for (std::size_t s = best.size() - 1; s > 0; --s) {
    p = best[s][p].before;
    cuts.push_back(places[p]);
  }
  std::reverse(cuts.begin(), cuts.end());
  return cuts;
}

}  // namespace

StageCut balanced_cut(const Graph& graph, const std::vector<bool>& owned, std::int64_t n, int stages) {
  const std::map<std::size_t, std::size_t> first = first_readers(graph, owned);
  std::set<std::size_t> places;
  for (const auto& [weight, node] : first) places.insert(node);
  if (stages < 1 || static_cast<std::size_t>(stages) > places.size()) {
    throw Error(
        ErrorKind::kConfig,
        fmt::format("model: found {} stages of a pipeline, wanted at most {}: so many of its calls have weights "
                    "of their own",
                    stages, places.size()));
  }
  const Estimate estimate(graph, n);
  std::vector<double> compute;
  compute.reserve(graph.nodes.size() + 1);
  compute.push_back(0);
  for (const Node& node : graph.nodes) compute.push_back(compute.back() + estimate.seconds(node));
  const std::vector<std::size_t> ordered(places.begin(), places.end());
  std::vector<double> send;
  send.reserve(ordered.size());
  for (const std::size_t node : ordered) send.push_back(estimate.seconds_to_send(node));
  const std::vector<std::size_t> cuts = best_cuts(ordered, compute, send, stages);
  StageCut cut{stages, std::vector<int>(graph.weights.size(), StageCut::kEvery)};
  for (std::size_t w = 0; w < graph.weights.size(); ++w) {
    if (!owned[w]) continue;
    const auto reader = first.find(w);  // none: evaluation alone reads it, or nothing
    cut.of_weight[w] =
        reader == first.end()
            ? stages - 1
            : static_cast<int>(std::upper_bound(cuts.begin(), cuts.end(), reader->second) - cuts.begin());
  }
  return cut;
}

}  // namespace hfta::fusion::cpu
