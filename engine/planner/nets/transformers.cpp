// Transformer, BERT-large and XLNet-large. HeteroG gives no lengths of sequences: sentences of 32 tokens for
// translation, and 128 for the others, with which BERT is trained for nine tenths of its steps (Devlin et al., A.2).

#include <string>
#include <utility>
#include <vector>

#include "engine/planner/nets/makers.hpp"

namespace hfta::engine::planner {
namespace {

struct Sizes {
  double tokens, width, heads, inner;
};

class TokenNet {
 public:
  TokenNet(std::string name, const Sizes& sizes) : s_(sizes) {
    graph_.name = std::move(name);
    graph_.states = 2;  // Adam
  }

  int embedding(double rows) { return push("embedding", {}, 0, rows * s_.width, s_.tokens * s_.width); }
  int linear(int in, double from, double to) {
    return push("linear", {in}, 2 * s_.tokens * from * to, (from + 1) * to, s_.tokens * to);
  }
  int add_norm(int a, int b) {
    return push("norm", {a, b}, 6 * s_.tokens * s_.width, 2 * s_.width, s_.tokens * s_.width);
  }
  /// Attention with queries of one op, keys and values of another. `relative`: with scores by distance (XLNet).
  int attention(int from, int to, bool relative) {
    const int queries = linear(from, s_.width, s_.width);
    const int keys = linear(to, s_.width, s_.width), values = linear(to, s_.width, s_.width);
    const double pairs = s_.tokens * s_.tokens;
    int scores = push("scores", {queries, keys}, 2 * pairs * s_.width, 0, s_.heads * pairs);
    if (relative) {
      const int distances = push("distances", {queries}, 2 * 2 * s_.tokens * s_.width * (s_.width + s_.tokens),
                                 s_.width * s_.width, s_.heads * pairs);
      scores = push("add", {scores, distances}, s_.heads * pairs, 0, s_.heads * pairs);
    }
    const int softmax = push("softmax", {scores}, 5 * s_.heads * pairs, 0, s_.heads * pairs);
    const int context = push("context", {softmax, values}, 2 * pairs * s_.width, 0, s_.tokens * s_.width);
    return add_norm(linear(context, s_.width, s_.width), from);
  }
  int feed_forward(int in) {
    const int inner = linear(in, s_.width, s_.inner);
    const int active = push("activation", {inner}, 8 * s_.tokens * s_.inner, 0, s_.tokens * s_.inner);
    return add_norm(linear(active, s_.inner, s_.width), in);
  }
  /// Scores of all words for a part of the tokens, by the embedding's weights.
  void words(int in, double rows, double part) {
    push("words", {in}, 2 * part * s_.tokens * s_.width * rows, 0, part * s_.tokens * rows);
  }

  Graph done() && { return std::move(graph_); }

 private:
  int push(const char* kind, std::vector<int> inputs, double flops, double weights, double outputs) {
    graph_.ops.push_back({kind + std::to_string(graph_.size()), std::move(inputs), flops, weights, outputs});
    return graph_.size() - 1;
  }
  Graph graph_;
  Sizes s_;
};

}  // namespace

// Vaswani et al., NIPS'17, table 3, base; a vocabulary of 37000 that both languages share.
Graph transformer(int layers) {
  constexpr double kWords = 37000;
  TokenNet net("transformer-" + std::to_string(layers), {32, 512, 8, 2048});
  const int words = net.embedding(kWords);
  int source = words;
  for (int i = 0; i < layers; ++i) source = net.feed_forward(net.attention(source, source, false));
  int target = words;
  for (int i = 0; i < layers; ++i) {
    target = net.attention(target, target, false);
    target = net.feed_forward(net.attention(target, source, false));
  }
  net.words(target, kWords, 1);
  return std::move(net).done();
}

// Devlin et al., NAACL'19: 1024 wide, 16 heads, 30522 words, 15 % of the tokens are predicted.
Graph bert_large(int layers) {
  constexpr double kWords = 30522, kPositions = 512 + 2;
  TokenNet net("bert-large-" + std::to_string(layers), {128, 1024, 16, 4096});
  int x = net.embedding(kWords + kPositions);
  for (int i = 0; i < layers; ++i) x = net.feed_forward(net.attention(x, x, false));
  net.words(net.linear(x, 1024, 1024), kWords, 0.15);
  return std::move(net).done();
}

// Yang et al., NeurIPS'19: BERT-large's sizes, 32000 words, attention by distances, a sixth of the tokens are
// predicted.
Graph xlnet_large(int layers) {
  constexpr double kWords = 32000;
  TokenNet net("xlnet-large-" + std::to_string(layers), {128, 1024, 16, 4096});
  int x = net.embedding(kWords);
  for (int i = 0; i < layers; ++i) x = net.feed_forward(net.attention(x, x, true));
  net.words(x, kWords, 1.0 / 6);
  return std::move(net).done();
}

}  // namespace hfta::engine::planner
