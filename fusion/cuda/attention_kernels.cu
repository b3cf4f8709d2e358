// Attention: a kernel for results and one for each side's gradients. Threads have rows of their side in registers, and
// the other side's rows come by in their order (attention_rows.cuh), so that each sum is one thread's, or one of a few
// lanes. Rows that come by unseen are left out, not given a weight of 0: times a NaN that would be NaN, and which rows
// come by depends on what else the warp has. Weights are made again from scores and sums wherever they are wanted;
// nothing of size L x S is ever written.
#include <limits>

#include "fusion/cuda/attention_kernels.hpp"
#include "fusion/cuda/attention_rows.cuh"

namespace hfta::fusion::cuda {
namespace {

struct Least {
  __device__ unsigned operator()(unsigned a, unsigned b) const { return a < b ? a : b; }
};
struct Most {
  __device__ unsigned operator()(unsigned a, unsigned b) const { return a > b ? a : b; }
};

// How many keys a query sees; none where there is no such query.
__device__ unsigned keys_seen(const AttentionShape& shape, const AttentionPlace& at, unsigned query) {
  if (!at.is_any || query >= shape.queries) return 0;
  return shape.causal ? Least()(query + 1, shape.keys) : shape.keys;
}

// The keys that some of a block's queries see.
__device__ unsigned keys_seen_by_block(const AttentionShape& shape, const AttentionPlan& plan) {
  return shape.causal ? Least()((blockIdx.y + 1) * plan.pairs * kOwn, shape.keys) : shape.keys;
}

// The first query that sees a key; none does where there is no such key.
__device__ unsigned first_to_see(const AttentionShape& shape, const AttentionPlace& at, unsigned key) {
  if (!at.is_any || key >= shape.keys) return shape.queries;
  return shape.causal ? key : 0;
}

// A query's softmax so far: the highest score, and the sum of exp(score - highest).
template <typename T>
struct RunningSoftmax {
  static constexpr T kNone = -std::numeric_limits<T>::infinity();
  T highest, sum;

  // Scores become weights, all relative to the highest score so far, and so does `y`, which was summed up with earlier
  // ones. `seen` of the scores count.
  template <unsigned kWidth>
  __device__ void take(T (&scores)[kChunk<T>], unsigned seen, Features<T, kWidth>& y) {
    T most = highest;
    for (unsigned k = 0; k < kChunk<T>; ++k) {
      if (k >= seen) scores[k] = kNone;
      if (scores[k] > most) most = scores[k];
    }
    const T from = most == kNone ? T{0} : most, by = std::exp(highest - from);
    highest = most;
    sum *= by;
    y.multiply(by);
    for (T& score : scores) {
      score = std::exp(score - from);
      sum += score;
    }
  }
};

template <typename T, unsigned kWidth>
__global__ void attention_kernel(AttentionShape shape, AttentionPlan plan, Side<const T> query, Side<const T> key,
                                 Side<const T> value, Side<T> out, T* log_sums) {
  __shared__ Quad<T> shared[2][kTile<T> / kQuad];
  const AttentionPlace at(shape, plan);
  const Tiles<T, kWidth> tiles{shared, shape, plan, at};
  OwnRows<T, kWidth> q, y;
  q.read(shape, query, shape.queries, at);
  y.fill(0);
  RunningSoftmax<T> softmax[kOwn];
  unsigned seen[kOwn];
  for (unsigned r = 0; r < kOwn; ++r) {
    q.of[r].multiply(static_cast<T>(shape.scale));
    softmax[r] = {RunningSoftmax<T>::kNone, 0};
    seen[r] = keys_seen(shape, at, at.row + r);
  }
  const unsigned of_block = keys_seen_by_block(shape, plan), of_warp = over_lanes(Most()(seen[0], seen[1]), Most());
  for (unsigned first = 0; first < of_block; first += plan.tile) {
    tiles.read(key, value, first, shape.keys);
    for (unsigned j = 0; j < plan.tile && first + j < of_warp; j += kChunk<T>) {
      T scores[kOwn][kChunk<T>];
      for (unsigned k = 0; k < kChunk<T>; ++k) {
        Features<T, kWidth> keys;
        keys.read_tile(tiles.row(0, j + k), at);
        for (unsigned r = 0; r < kOwn; ++r) scores[r][k] = q.of[r].times(keys);
      }
      over_parts(scores, plan.lane_bits);
      unsigned count[kOwn];  // number of scores of keys that are seen
      for (unsigned r = 0; r < kOwn; ++r) {
        count[r] = seen[r] > first + j ? seen[r] - first - j : 0;
        softmax[r].take(scores[r], count[r], y.of[r]);
      }
      for (unsigned k = 0; k < kChunk<T>; ++k) {
        Features<T, kWidth> values;
        values.read_tile(tiles.row(1, j + k), at);
        for (unsigned r = 0; r < kOwn; ++r) {
          if (k < count[r]) y.of[r].add(scores[r][k], values);
        }
      }
    }
  }
  for (unsigned r = 0; r < kOwn; ++r) {
    const T sum = softmax[r].sum;
    y.of[r].multiply(sum == 0 ? T{0} : 1 / sum);
    if (at.part != 0 || !at.is_any || at.row + r >= shape.queries) continue;
    log_sums[at.place_of(r, shape.queries)] = sum == 0 ? T{0} : softmax[r].highest + std::log(sum);
  }
  y.write(shape, out, shape.queries, at);
}

// A query's log_sums, and its sum of dy y, which is that of its weights times their gradients.
template <typename T>
struct QuerySums {
  T log_sum, product;

  // The weight of a score, and the gradient by the score where that by the weight is `by_weight`.
  __device__ void weigh(T& score, T& by_weight) const {
    score = std::exp(score - log_sum);
    by_weight = score * (by_weight - product);
  }
};

// Gradients by queries. `products`: as in QuerySums, for the other kernel.
template <typename T, unsigned kWidth>
__global__ void attention_query_kernel(AttentionShape shape, AttentionPlan plan, Side<const T> query, Side<const T> key,
                                       Side<const T> value, Side<const T> y, Side<const T> dy, const T* log_sums,
                                       T* products, Side<T> out) {
  constexpr unsigned kCount = 16 / kWidth;  // keys at a time: as many as registers hold
  __shared__ Quad<T> shared[2][kTile<T> / kQuad];
  const AttentionPlace at(shape, plan);
  const Tiles<T, kWidth> tiles{shared, shape, plan, at};
  OwnRows<T, kWidth> q, g, dq;
  g.read(shape, dy, shape.queries, at);
  dq.read(shape, y, shape.queries, at);
  q.read(shape, query, shape.queries, at);
  T product[kOwn][1];
  for (unsigned r = 0; r < kOwn; ++r) product[r][0] = g.of[r].times(dq.of[r]);
  over_parts(product, plan.lane_bits);
  dq.fill(0);
  QuerySums<T> sums[kOwn];
  unsigned seen[kOwn];
  for (unsigned r = 0; r < kOwn; ++r) {
    q.of[r].multiply(static_cast<T>(shape.scale));
    seen[r] = keys_seen(shape, at, at.row + r);
    sums[r] = {0, product[r][0]};
    if (!at.is_any || at.row + r >= shape.queries) continue;
    sums[r].log_sum = log_sums[at.place_of(r, shape.queries)];
    if (at.part == 0) products[at.place_of(r, shape.queries)] = product[r][0];
  }
  const unsigned of_block = keys_seen_by_block(shape, plan), of_warp = over_lanes(Most()(seen[0], seen[1]), Most());
  for (unsigned first = 0; out.rows.data != nullptr && first < of_block; first += plan.tile) {
    tiles.read(key, value, first, shape.keys);
    for (unsigned j = 0; j < plan.tile && first + j < of_warp; j += kCount) {
      Features<T, kWidth> keys[kCount], values;
      T scores[kOwn][kCount], by_weights[kOwn][kCount];
      for (unsigned k = 0; k < kCount; ++k) {
        keys[k].read_tile(tiles.row(0, j + k), at);
        values.read_tile(tiles.row(1, j + k), at);
        for (unsigned r = 0; r < kOwn; ++r) {
          scores[r][k] = q.of[r].times(keys[k]);
          by_weights[r][k] = g.of[r].times(values);
        }
      }
      over_parts(scores, plan.lane_bits);
      over_parts(by_weights, plan.lane_bits);
      for (unsigned k = 0; k < kCount; ++k) {
        for (unsigned r = 0; r < kOwn; ++r) {
          if (first + j + k >= seen[r]) continue;
          sums[r].weigh(scores[r][k], by_weights[r][k]);
          dq.of[r].add(by_weights[r][k], keys[k]);
        }
      }
    }
  }
  if (out.rows.data == nullptr) return;
  for (auto& row : dq.of) row.multiply(static_cast<T>(shape.scale));
  dq.write(shape, out, shape.queries, at);
}

// Gradients by keys and values, of which a thread has two of each; queries come by.
template <typename T, unsigned kWidth>
__global__ void attention_key_kernel(AttentionShape shape, AttentionPlan plan, Side<const T> query, Side<const T> key,
                                     Side<const T> value, Side<const T> dy, const T* log_sums, const T* products,
                                     Side<T> by_key, Side<T> by_value) {
  __shared__ Quad<T> shared[2][kTile<T> / kQuad];
  __shared__ QuerySums<T> sums[kTile<T> / kWidth];
  const AttentionPlace at(shape, plan);
  const Tiles<T, kWidth> tiles{shared, shape, plan, at};
  OwnRows<T, kWidth> k, v, dk, dv;
  k.read(shape, key, shape.keys, at);
  v.read(shape, value, shape.keys, at);
  for (auto& row : k.of) row.multiply(static_cast<T>(shape.scale));
  dk.fill(0);
  dv.fill(0);
  // The first query that sees a key of the thread, of the warp and of the block.
  unsigned seen_from[kOwn];
  for (unsigned r = 0; r < kOwn; ++r) seen_from[r] = first_to_see(shape, at, at.row + r);
  const unsigned of_warp = over_lanes(seen_from[0], Least());
  const unsigned of_block = shape.causal ? blockIdx.y * plan.pairs * kOwn : 0;
  for (unsigned first = of_block / plan.tile * plan.tile; first < shape.queries; first += plan.tile) {
    tiles.read(query, dy, first, shape.queries);
    for (unsigned i = at.member; at.is_any && i < plan.tile && first + i < shape.queries; i += at.team) {
      const std::size_t from = static_cast<std::size_t>(at.head) * shape.queries + first + i;
      sums[at.in_block * plan.tile + i] = {log_sums[from], products[from]};
    }
    __syncthreads();
    for (unsigned i = of_warp > first ? of_warp - first : 0; i < plan.tile && first + i < shape.queries; ++i) {
      Features<T, kWidth> q, g;
      q.read_tile(tiles.row(0, i), at);
      g.read_tile(tiles.row(1, i), at);
      T scores[kOwn][1], by_weights[kOwn][1];
      for (unsigned r = 0; r < kOwn; ++r) {
        scores[r][0] = k.of[r].times(q);
        by_weights[r][0] = v.of[r].times(g);
      }
      over_parts(scores, plan.lane_bits);
      over_parts(by_weights, plan.lane_bits);
      const QuerySums<T> of_query = sums[at.in_block * plan.tile + i];
      for (unsigned r = 0; r < kOwn; ++r) {
        if (first + i < seen_from[r]) continue;
        of_query.weigh(scores[r][0], by_weights[r][0]);
        dk.of[r].add(by_weights[r][0], q);
        dv.of[r].add(scores[r][0], g);
      }
    }
  }
  for (auto& row : dk.of) row.multiply(static_cast<T>(shape.scale));
  if (by_key.rows.data != nullptr) dk.write(shape, by_key, shape.keys, at);
  if (by_value.rows.data != nullptr) dv.write(shape, by_value, shape.keys, at);
}

// Rows as the shape has them.
template <typename T>
struct Sides {
  Side<const T> query, key, value;
  Sides(const AttentionShape& shape, const AttentionInput<T>& in)
      : query(in.query, shape.key_features), key(in.key, shape.key_features), value(in.value, shape.value_features) {}
};

template <typename T, unsigned kWidth>
void forward(const AttentionShape& shape, const AttentionInput<T>& in, const AttentionRows<T>& y, T* log_sums,
             void* stream) {
  const Sides<T> sides(shape, in);
  const AttentionPlan plan = plan_of<T, kWidth>(shape, shape.queries, shape.keys);
  launch("attention", attention_kernel<T, kWidth>, grid_of(shape, plan, shape.queries), stream, shape, plan,
         sides.query, sides.key, sides.value, Side<T>(y, shape.value_features), log_sums);
}

template <typename T, unsigned kWidth>
void backward(const AttentionShape& shape, const AttentionInput<T>& in, const AttentionResult<T>& result,
              const AttentionGradients<T>& out, T* workspace, void* stream) {
  const Sides<T> sides(shape, in);
  const Side<const T> y(result.y, shape.value_features), dy(result.dy, shape.value_features);
  const AttentionPlan by_queries = plan_of<T, kWidth>(shape, shape.queries, shape.keys);
  launch("attention's gradient by queries", attention_query_kernel<T, kWidth>,
         grid_of(shape, by_queries, shape.queries), stream, shape, by_queries, sides.query, sides.key, sides.value, y,
         dy, result.log_sums, workspace, Side<T>(out.query, shape.key_features));
  if (out.key.data == nullptr && out.value.data == nullptr) return;
  const AttentionPlan by_keys = plan_of<T, kWidth>(shape, shape.keys, shape.queries);
  launch("attention's gradient by keys and values", attention_key_kernel<T, kWidth>,
         grid_of(shape, by_keys, shape.keys), stream, shape, by_keys, sides.query, sides.key, sides.value, dy,
         result.log_sums, workspace, Side<T>(out.key, shape.key_features), Side<T>(out.value, shape.value_features));
}

// Wide rows are shared by fewer lanes where registers hold more of each.
bool is_wide(const AttentionShape& shape) { return std::max(shape.key_features, shape.value_features) > 16; }

}  // namespace

void attention(const AttentionShape& shape, const AttentionInput<float>& in, const AttentionRows<float>& y,
               float* log_sums, void* stream) {
  (is_wide(shape) ? forward<float, 16> : forward<float, 8>)(shape, in, y, log_sums, stream);
}
void attention(const AttentionShape& shape, const AttentionInput<double>& in, const AttentionRows<double>& y,
               double* log_sums, void* stream) {
  forward<double, 8>(shape, in, y, log_sums, stream);
}

void attention_backward(const AttentionShape& shape, const AttentionInput<float>& in,
                        const AttentionResult<float>& result, const AttentionGradients<float>& out, float* workspace,
                        void* stream) {
  (is_wide(shape) ? backward<float, 16> : backward<float, 8>)(shape, in, result, out, workspace, stream);
}
void attention_backward(const AttentionShape& shape, const AttentionInput<double>& in,
                        const AttentionResult<double>& result, const AttentionGradients<double>& out, double* workspace,
                        void* stream) {
  backward<double, 8>(shape, in, result, out, workspace, stream);
}

}  // namespace hfta::fusion::cuda
