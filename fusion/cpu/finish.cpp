// Makes a plan of a builder's kernels: values are given away, encoded, brought back; buffers get places in the arena.
#include <algorithm>
#include <numeric>
#include <utility>

#include "fusion/cpu/apply.hpp"
#include "fusion/cpu/builder.hpp"

namespace hfta::fusion::cpu {
namespace {

// Joins the place that a step writes with that of a buffer which nobody reads afterwards and whose memory it may take.
// Gives, by place, the one that it is now.
std::vector<std::size_t> joined(const std::vector<Step>& steps, std::vector<Placed>& places) {
  std::vector<std::size_t> whose(places.size());
  std::iota(whose.begin(), whose.end(), 0);
  for (std::size_t k = 0; k < steps.size(); ++k) {
    if (steps[k].in_place.from < 0) continue;
    const std::size_t from = whose[static_cast<std::size_t>(steps[k].in_place.from)],
                      to = static_cast<std::size_t>(steps[k].in_place.to);
    const bool follows = places[from].life.end == k + 1 && places[to].life.begin == k && !places[to].life.empty();
    if (!follows || places[from].bytes != places[to].bytes) continue;
    places[from].life.end = std::exchange(places[to].life, {}).end;
    whose[to] = from;
  }
  return whose;
}

}  // namespace

// Binds the tensors that a run is given and leaves behind.
void Builder::bind_ends(CompiledGraph& plan, std::span<const ValueId> outputs) {
  for (const ValueId id : outputs) plan.outputs.push_back(value(id));
  plan.applies = apply_bytes_ > 0;
  if (!plan.applies) plan.gradients = weight_gradients();
  plan.weights = weights_;
  plan.inputs = inputs_;
}

std::vector<WeightGradient> Builder::weight_gradients() {
  std::vector<WeightGradient> all = in_rows_;
  for (std::size_t i = 0; i < weights_.size(); ++i) {
    if (has_gradient(weights_[i])) all.push_back({i, 0, gradient_view(weights_[i])});
  }
  return all;
}

std::vector<bool> Builder::pinned(const CompiledGraph& plan) const {
  std::vector<bool> all(buffers_.size());
  std::transform(buffers_.begin(), buffers_.end(), all.begin(), [](const Buffer& b) { return b.outside || b.held; });
  for (const auto* tensors : {&plan.inputs, &plan.outputs}) {
    for (const Tensor& t : *tensors) all[static_cast<std::size_t>(t.buffer)] = true;
  }
  for (const WeightGradient& one : plan.gradients) all[static_cast<std::size_t>(one.tensor.buffer)] = true;
  return all;
}

// Sizes and lifetimes by buffer; behind them those of buffers brought back, from then on.
std::vector<Placed> Builder::lifetimes(const CompiledGraph& plan, const Recomputing& all) const {
  const std::vector<Step>& steps = all.schedule.steps;
  std::vector<Placed> placed(buffers_.size() + all.brought.size());
  std::vector<std::size_t> again(buffers_.size(), 0);  // by buffer: its second place, if it has one
  for (std::size_t i = 0; i < all.brought.size(); ++i) {
    again[static_cast<std::size_t>(all.brought[i].buffer)] = buffers_.size() + i;
  }
  const auto use = [&](int buffer, std::size_t begin, std::size_t end) {
    const auto b = static_cast<std::size_t>(buffer);
    if (buffers_[b].outside) return;
    Placed& place = placed[again[b] > 0 && begin >= all.schedule.backward ? again[b] : b];
    place.bytes = buffers_[b].bytes;
    Lifetime& life = place.life;
    life.begin = life.empty() ? begin : std::min(life.begin, begin);
    life.end = std::max(life.end, end);
  };
  for (std::size_t k = 0; k < steps.size(); ++k) {
    for (const int b : steps[k].buffers) use(b, k, k + 1);
  }
  for (const Tensor& t : plan.inputs) use(t.buffer, 0, steps.size() + 1);
  for (const Tensor& t : plan.outputs) use(t.buffer, steps.size(), steps.size() + 1);
  for (const WeightGradient& one : plan.gradients) use(one.tensor.buffer, steps.size(), steps.size() + 1);
  return placed;
}

Placement Builder::placed(const CompiledGraph& plan, const Recomputing& all) const {
  std::vector<Placed> places = lifetimes(plan, all);
  const std::vector<std::size_t> whose = joined(all.schedule.steps, places);
  Placement placement = place(places);
  for (std::size_t i = 0; i < whose.size(); ++i) placement.offsets[i] = placement.offsets[whose[i]];
  return placement;
}

// Memory for as much as a value of n elements is foreseen to take.
Tensor Builder::room_for(std::int64_t n, bool of_norm) {
  constexpr double kBitsOfByte = 8;
  const double bytes = (of_norm ? kBitsOfNormInput : kBitsOfLayerInput) / kBitsOfByte * static_cast<double>(n);
  return fresh({static_cast<std::int64_t>(bytes)}, DType::kUInt8);
}

// Encodings of values that may be encoded; kernels know a value by its position in plan.encoded.
std::vector<Encoding> Builder::encodings(const std::vector<bool>& pinned, CompiledGraph& plan) {
  std::vector<Encoding> all;
  for (const LayerReads::Candidate& one : layer_reads_.candidates(schedule_)) {
    const std::int64_t n = buffers_[static_cast<std::size_t>(one.buffer)].elements, piece = one.piece();
    if (pinned[static_cast<std::size_t>(one.buffer)] || n < kLeastEncoded) continue;
    const std::size_t i = plan.encoded.size();
    const Tensor room = room_for(n, one.standard().has_value());
    plan.encoded.push_back({n, piece > 0 ? piece : n, one.layers(), one.standard(), room});
    const Tensor x{one.buffer, 0, {n}, {1}, DType::kFloat32};
    const Standard by = one.standard().value_or(Standard{});
    Step encode = step_of({x, by.mean, by.deviation, room},
                          [i, x](const Run& run) { run.coding->encode(run, i, run.at<float>(x)); });
    Step decode = step_of({x, by.mean, by.deviation, room},
                          [i, n, x](const Run& run) { run.coding->decode(run, i, 0, n, run.at<float>(x), run.team); });
    encode.info = {kNoNode, "encode", false, "", encode.info.bytes, encode.info.sizes};
    decode.info = {kNoNode, "decode", true, "", decode.info.bytes, decode.info.sizes};
    all.push_back({one.buffer, std::move(encode), std::move(decode), {}, one.standard().has_value()});
    if (piece == 0) continue;
    for (const LayerReads::Read& read : one.reads) {
      all.back().instead.push_back({read.step, read.by_pieces(i)});
      all.back().instead.back().step.buffers.push_back(room.buffer);
    }
  }
  return all;
}

// The kernels in the order in which they will run.
Recomputing Builder::scheduled(const CompiledGraph& plan, const std::vector<Encoding>& encoded,
                               const std::vector<bool>& pinned, Recompute recompute) {
  Recomputing all = recomputing(schedule_, recomputations_, encoded, pinned, recompute);
  if (plan.applies) apply_gradients(all, weight_gradients(), weights_, plan.outputs, apply_bytes_);
  return all;
}

std::size_t Builder::arena_bytes(std::span<const ValueId> outputs, Recompute recompute) {
  CompiledGraph ends;
  bind_ends(ends, outputs);
  const std::vector<Encoding> encoded = encodings(pinned(ends), ends);
  const std::vector<bool> fixed = pinned(ends);
  return placed(ends, scheduled(ends, encoded, fixed, recompute)).bytes;
}

// Values that are brought back mostly lie elsewhere than before: at one place all the time they would be in the way.
void Builder::let_move(CompiledGraph& plan, const Recomputing& all) const {
  struct Move {
    std::size_t buffer, place;
  };
  std::vector<Move> back;  // what a run begins with
  for (std::size_t i = 0; i < all.brought.size(); ++i) {
    const auto buffer = static_cast<std::size_t>(all.brought[i].buffer);
    const Move there{buffer, buffers_.size() + i};
    back.push_back({buffer, plan.offsets.size()});
    plan.offsets.push_back(plan.offsets[buffer]);
    Kernel& kernel = plan.kernels[all.brought[i].step];
    kernel = [there, inner = std::move(kernel)](const Run& run) {
      run.buffers[there.buffer] = run.buffers[there.place];
      inner(run);
    };
  }
  if (back.empty()) return;
  plan.kernels.front() = [back, inner = std::move(plan.kernels.front())](const Run& run) {
    for (const Move& one : back) run.buffers[one.buffer] = run.buffers[one.place];
    inner(run);
  };
}

CompiledGraph Builder::finish(std::span<const ValueId> outputs, Recompute recompute) {
  CompiledGraph plan;
  plan.threads = threads_;
  bind_ends(plan, outputs);
  if (!training_) schedule_.backward = schedule_.steps.size();
  const std::vector<Encoding> encoded = encodings(pinned(plan), plan);
  const std::vector<bool> fixed = pinned(plan);
  const Recomputing all = scheduled(plan, encoded, fixed, recompute);
  for (std::size_t i = 0; i < encoded.size(); ++i) {
    if (!all.encoded[static_cast<std::size_t>(encoded[i].buffer)]) plan.encoded[i].elements = 0;
  }
  plan.backward = all.schedule.backward;
  std::vector<bool> read(buffers_.size(), false);
  for (const Step& step : all.schedule.steps) {
    for (const int b : step.buffers) read[static_cast<std::size_t>(b)] = true;
    plan.kernels.push_back(step.kernel);
    plan.infos.push_back(step.info);
  }
  for (const Tensor& t : plan.outputs) read[static_cast<std::size_t>(t.buffer)] = true;  // a constant may be one
  std::erase_if(constants_,
                [&](const CompiledGraph::Constant& c) { return !read[static_cast<std::size_t>(c.buffer)]; });
  plan.constants = std::move(constants_);
  plan.parts = std::move(parts_);
  plan.recomputed = static_cast<std::size_t>(std::count_if(
      all.brought.begin(), all.brought.end(),
      [&](const Recomputing::Brought& one) { return !all.encoded[static_cast<std::size_t>(one.buffer)]; }));
  const Placement placement = placed(plan, all);
  plan.offsets = placement.offsets;
  plan.arena_bytes = placement.bytes;
  let_move(plan, all);
  return plan;
}

}  // namespace hfta::fusion::cpu
