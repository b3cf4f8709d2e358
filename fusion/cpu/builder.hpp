#pragma once
/// Compiling a graph into a plan: what an op's compiler (ops.hpp) works with.
///
/// Ops are compiled in the graph's order; each emits its forward kernels and leaves behind a function that emits its
/// backward ones. Those are called in reverse when all ops are compiled. A gradient has the layout of the value's own
/// buffer, so a view's gradient is the same view of the gradient, and views need no backward kernels.

#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "fusion/cpu/compiled_graph.hpp"
#include "fusion/cpu/encode.hpp"
#include "fusion/cpu/options.hpp"
#include "fusion/cpu/placement.hpp"
#include "fusion/cpu/recompute.hpp"
#include "fusion/graph/numbers.hpp"

namespace hfta::fusion::cpu {

class Builder {
 public:
  /// `n`: samples of a batch. `training`: gradients are wanted. `options`: without TrainingOptions::recompute, which
  /// finish() is given.
  Builder(const Graph& graph, std::vector<int> index, DType dtype, std::int64_t n, bool training,
          const TrainingOptions& options = {});

  // ---- The graph ----

  [[nodiscard]] const Graph& graph() const { return graph_; }
  [[nodiscard]] bool training() const { return training_; }
  [[nodiscard]] DType dtype() const { return dtype_; }  ///< Type of floating-point values.
  [[nodiscard]] std::int64_t batch() const { return n_; }
  /// Position of the node in the model's graph: the key of its randomness.
  [[nodiscard]] std::uint32_t random_key(std::size_t node) const { return static_cast<std::uint32_t>(index_[node]); }
  [[nodiscard]] bool bound(ValueId id) const { return values_[static_cast<std::size_t>(id)].defined(); }
  [[nodiscard]] const Tensor& value(ValueId id) const { return values_[static_cast<std::size_t>(id)]; }
  void bind(ValueId id, Tensor tensor);
  void bind_number(ValueId id, Number number) {
    if (id != kNoValue) numbers_[static_cast<std::size_t>(id)] = number;
  }
  [[nodiscard]] const std::optional<Number>& number(ValueId id) const { return numbers_[static_cast<std::size_t>(id)]; }
  [[nodiscard]] bool is_output(ValueId id) const;
  /// The node that is the only one to read the value, which is no output and no view of another; nothing otherwise, and
  /// where the node runs without gradients or was kept apart.
  [[nodiscard]] std::optional<std::size_t> only_reader(ValueId id) const;
  /// The node that makes the value; nothing if none does.
  [[nodiscard]] std::optional<std::size_t> maker(ValueId id) const;
  /// The node is not to be compiled along with another one.
  void keep_apart(std::size_t node) { apart_[node] = true; }
  [[nodiscard]] bool apart(std::size_t node) const { return apart_[node]; }
  /// The node was compiled along with another one.
  void fuse(std::size_t node) { fused_[node] = true; }
  [[nodiscard]] bool fused(std::size_t node) const { return fused_[node]; }
  /// An earlier kernel does the node's work: its output is its first input.
  void pass_on(std::size_t node) { passes_on_[node] = true; }
  [[nodiscard]] bool passes_on(std::size_t node) const { return passes_on_[node]; }

  // ---- Memory and kernels ----

  /// A row-major buffer of its own.
  [[nodiscard]] Tensor fresh(Dims sizes, DType dtype);
  [[nodiscard]] Tensor fresh(Dims sizes) { return fresh(std::move(sizes), dtype_); }
  /// Scratch memory of so many elements for each thread: [threads, elements], for Run::own. No cache line belongs to
  /// two.
  [[nodiscard]] Tensor scratch(std::int64_t elements);
  [[nodiscard]] int threads() const { return threads_; }
  /// A tensor that is known when the plan is made, which holds it. `bytes`: row-major.
  [[nodiscard]] Tensor constant(Dims sizes, DType dtype, std::vector<std::byte> bytes);
  /// The bytes of the tensor's buffer if it is a constant; null otherwise.
  [[nodiscard]] const std::byte* constant_bytes(const Tensor& tensor) const;
  /// Whether the tensor lies in the memory of a weight.
  [[nodiscard]] bool is_weight(const Tensor& tensor) const;
  /// A further part that a library runs, of these ops; its place in Run::kept.
  [[nodiscard]] std::size_t add_part(std::vector<std::string> ops);
  /// Says that a library may keep the tensor's address from the forward to the backward, or write there: its value is
  /// not given away in between, to come back elsewhere or as it was before.
  void hold(const Tensor& tensor) { buffer_of(tensor).held = true; }
  /// Appends a kernel. `touched`: every tensor that it reads or writes; they live until then. Throws ShapeError if one
  /// reaches beyond its buffer.
  void emit(const std::vector<Tensor>& touched, Kernel kernel);
  /// Names the algorithm of the kernel emitted last, where there are several: for profiles.
  void names_algorithm(std::string name) { schedule_.steps.back().info.algorithm = std::move(name); }
  /// Says that `kernel` computes `output`, which the kernel emitted last has written whole, once more, to the same
  /// bits, from what else it touches.
  void recomputable(const Tensor& output, const std::vector<Tensor>& touched, Kernel kernel, RecomputeCost cost);
  /// Whether inputs of layers may be encoded, and relus are to keep their signs for their backward.
  [[nodiscard]] bool encodes() const { return bounds_ != nullptr; }
  /// The position in Graph::weights of a layer's weight, if it is one as a whole whose layer's input may be encoded.
  [[nodiscard]] std::optional<std::size_t> bounded(const Tensor& weight) const;
  /// How a kernel does without the whole of an encoded value: `kernel` makes the one for the plan's i-th encoded value,
  /// which touches `touched` instead of what the other one does, and decodes `elements` at a time.
  struct Pieces {
    std::int64_t elements = 0;
    std::vector<Tensor> touched = {};
    std::function<Kernel(std::size_t i)> kernel = {};
  };
  /// Says that the kernel emitted last reads `x`, whose channels are last in memory, for the gradient of `weight`
  /// alone. If that is bounded(), other kernels tell what Coding::measured() is to know of the layer.
  void reads_for_gradient(const Tensor& x, const Tensor& weight, std::int64_t channels, std::int64_t groups,
                          const Pieces& pieces);
  /// Likewise of a batch norm, of whose input `standard` holds the means and deviations.
  void reads_for_norm(const Tensor& x, const Tensor& weight, const Standard& standard, const Pieces& pieces);
  /// Says that the kernel emitted last, which writes all of `to` and reads `from`, may do so where `from` lies.
  void writes_in_place(const Tensor& from, const Tensor& to);
  /// Kernels that are emitted from now on belong to the node.
  void begin_node(std::size_t node) { node_ = node; }
  /// The value row-major: itself, or a copy, whose gradient flows back.
  [[nodiscard]] Tensor contiguous(const Tensor& t);
  /// A row-major copy that no gradient goes through.
  [[nodiscard]] Tensor copied(const Tensor& t);
  [[nodiscard]] Tensor contiguous_or_none(const Tensor& t) { return t.defined() ? contiguous(t) : t; }
  /// The value with its dimensions lying in memory in this order, without gaps: itself, or a copy, whose gradient flows
  /// back.
  [[nodiscard]] Tensor in_order(const Tensor& t, std::span<const std::int64_t> order);

  // ---- Gradients ----

  /// Whether the loss's gradient with respect to the tensor is wanted.
  [[nodiscard]] bool wants_gradient(const Tensor& t) const;
  /// Says that it is wanted: the tensor is computed from such ones. Ops call it through differentiable().
  void want_gradient(const Tensor& t);
  /// Whether what is emitted from now on is differentiable: not under torch.no_grad().
  void record(bool on) { recording_ = on; }
  /// Registers `backward` for an op's outputs, if any input wants a gradient; returns whether it did.
  bool differentiable(const std::vector<Tensor>& inputs, const std::vector<Tensor>& outputs,
                      std::function<void()> backward);
  /// The complete gradient of an output, while backward functions run; nothing if the loss does not depend on it.
  [[nodiscard]] std::optional<Tensor> gradient(const Tensor& output);
  /// Whether there is a part of the tensor's gradient already.
  [[nodiscard]] bool has_gradient(const Tensor& t) const {
    return buffers_[static_cast<std::size_t>(t.buffer)].gradient >= 0;
  }
  /// Whether the tensor is, or views, a weight that is not trained, which batch norms and counters write.
  [[nodiscard]] bool is_buffer_of_model(const Tensor& t) const {
    const Buffer& buffer = buffers_[static_cast<std::size_t>(t.buffer)];
    return buffer.outside && !buffer.wanted;
  }
  /// Whether the loss depends on the tensor, when backward functions have run: it had a gradient then, even if that was
  /// handed on or was a library's own.
  [[nodiscard]] bool reached(const Tensor& t) const { return buffers_[static_cast<std::size_t>(t.buffer)].reached; }
  /// The loss depends on the tensor through a gradient that the builder does not see.
  void set_reached(const Tensor& t) { buffer_of(t).reached = true; }
  /// Memory for a part of an input's gradient; if `add`, the part is added to what is there.
  struct Part {
    Tensor tensor;
    bool add = false;
  };
  [[nodiscard]] Part contribute(const Tensor& input);
  /// contribute(input), or an undefined tensor where nobody wants that gradient.
  [[nodiscard]] Part contribute_if_wanted(const Tensor& input) {
    return wants_gradient(input) ? contribute(input) : Part{};
  }
  /// `gradient` as a part of the input's gradient, which it becomes itself if it is the first: nobody else may write to
  /// it afterwards.
  void contribute(const Tensor& input, const Tensor& gradient);
  /// The gradient of `output`, which nobody reads any more, as a part of the input's, which takes its place if it is
  /// the first. To be called last in the backward of the op that made `output`.
  void hand_on_gradient(const Tensor& output, const Tensor& input);
  /// The input's whole gradient was written in the place of the gradient of `output`, which nobody reads any more. Both
  /// tensors fill their buffers in the same layout; the input has no gradient yet.
  void hand_over_gradient(const Tensor& output, const Tensor& input);

  /// A weight's gradient as several tensors of some rows each (a multiple of `multiple` but for the last), if it is
  /// applied that way (TrainingOptions::apply_bytes): the caller writes each of them whole. Empty if another node reads
  /// the weight, too, or if it is small: the caller then uses contribute().
  [[nodiscard]] std::vector<WeightGradient> gradient_in_rows(const Tensor& weight, std::int64_t multiple);

  /// Emits the backward kernels of everything that was registered, from the loss on, which has one element. Throws
  /// Error{kConfig} if nothing trained has a part in it.
  void run_backward(const Tensor& loss);
  /// A value that the backward starts from, and its given gradient, which nobody else may write to afterwards.
  struct Seed {
    Tensor value, gradient;
  };
  void run_backward(std::span<const Seed> seeds);
  /// The gradient of an input, after run_backward(); zero where nothing depends on it.
  [[nodiscard]] Tensor gradient_of_input(const Tensor& input);
  /// `outputs`: values of the graph that can be read after a run.
  [[nodiscard]] CompiledGraph finish(std::span<const ValueId> outputs, Recompute recompute = 0);
  /// CompiledGraph::arena_bytes of what finish() would make.
  [[nodiscard]] std::size_t arena_bytes(std::span<const ValueId> outputs, Recompute recompute);

 private:
  struct Buffer {
    std::size_t bytes = 0;
    std::int64_t elements = 0;
    DType dtype = DType::kFloat32;
    bool outside = false;
    bool held = false;     ///< Builder::hold
    bool wanted = false;   ///< Its gradient is wanted.
    int gradient = -1;     ///< Buffer of its gradient.
    bool reached = false;  ///< Builder::reached
  };
  [[nodiscard]] Buffer& buffer_of(const Tensor& t) { return buffers_[static_cast<std::size_t>(t.buffer)]; }
  [[nodiscard]] Tensor gradient_view(const Tensor& t);
  void set_gradient(const Tensor& t, int gradient);
  [[nodiscard]] bool may_become(const Tensor& gradient, const Tensor& input) const;
  void emit_backward();
  void check_within(const Tensor& t) const;
  [[nodiscard]] Step step_of(const std::vector<Tensor>& touched, Kernel kernel) const;
  [[nodiscard]] CompiledGraph::KernelInfo info_of(const std::vector<Tensor>& touched) const;
  void bind_ends(CompiledGraph& plan, std::span<const ValueId> outputs);
  [[nodiscard]] std::optional<std::size_t> whole_weight(const Tensor& tensor) const;
  void read_for_layer(const Tensor& x, const Tensor& weight, LayerReads::Read read, const Pieces& pieces);
  [[nodiscard]] std::vector<WeightGradient> weight_gradients();
  [[nodiscard]] Recomputing scheduled(const CompiledGraph& plan, const std::vector<Encoding>& encoded,
                                      const std::vector<bool>& pinned, Recompute recompute);
  [[nodiscard]] std::vector<bool> pinned(const CompiledGraph& plan) const;
  [[nodiscard]] std::vector<Encoding> encodings(const std::vector<bool>& pinned, CompiledGraph& plan);
  [[nodiscard]] Tensor room_for(std::int64_t n, bool of_norm);
  [[nodiscard]] std::vector<Placed> lifetimes(const CompiledGraph& plan, const Recomputing& all) const;
  [[nodiscard]] Placement placed(const CompiledGraph& plan, const Recomputing& all) const;
  void let_move(CompiledGraph& plan, const Recomputing& all) const;

  const Graph& graph_;
  std::vector<int> index_;
  DType dtype_;
  std::int64_t n_;
  bool training_;
  int threads_;
  std::vector<Tensor> values_;
  std::vector<std::optional<Number>> numbers_;
  std::vector<std::vector<std::size_t>> readers_;  ///< By value.
  std::vector<std::size_t> makers_;                ///< By value: makers_of().
  std::vector<bool> fused_, passes_on_, apart_;
  bool recording_ = true;
  std::vector<Buffer> buffers_;
  Schedule schedule_;
  std::vector<Recomputation> recomputations_;
  const BoundLayout* bounds_;
  std::int64_t apply_bytes_;
  std::vector<WeightGradient> in_rows_;  ///< gradient_in_rows() of all weights that have them.
  LayerReads layer_reads_;
  struct Backward {
    std::size_t node = 0;
    std::function<void()> emit;
  };
  std::vector<Backward> backward_;
  static constexpr std::size_t kNoNode = static_cast<std::size_t>(-1);
  std::size_t node_ = kNoNode;
  bool in_backward_ = false;
  std::vector<Tensor> weights_, inputs_;
  std::vector<CompiledGraph::Constant> constants_;
  std::vector<std::vector<std::string>> parts_;
};

/// f.template operator()<float>() or <double>(), by dtype.
template <typename F>
auto typed(DType dtype, F f) {
  return dtype == DType::kFloat64 ? f.template operator()<double>() : f.template operator()<float>();
}

}  // namespace hfta::fusion::cpu
