#pragma once
/// A compiled step: kernels in order, and where in one arena their buffers lie.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "fusion/cpu/tensor.hpp"
#include "fusion/random/draws.hpp"
#include "fusion/threads/team.hpp"

namespace hfta::fusion::cpu {

class Coding;

/// State that a part run by a library (library.hpp) keeps from its forward for its backward.
class Kept {
 public:
  Kept() = default;
  virtual ~Kept() = default;
  Kept(const Kept&) = delete;
  Kept& operator=(const Kept&) = delete;
};

/// Consecutive elements of a weight's gradient: as a rule all of them.
struct WeightGradient {
  std::size_t weight = 0;  ///< Position in Graph::weights.
  std::int64_t first = 0;  ///< Position of the first element in the weight, row-major.
  Tensor tensor;           ///< Row-major.
};

struct Run;
/// A function that takes complete gradients, as a rule to apply them to their weights. The run reads neither these
/// gradients nor their weights afterwards.
using Apply = std::function<void(const Run&, std::span<const WeightGradient>)>;

/// Arguments of one run of a plan, which is for one slot and one batch.
struct Run {
  std::span<std::byte*> buffers;   ///< By Tensor::buffer. Kernels that bring a value back may put it elsewhere.
  std::span<const double> hypers;  ///< The slot's values of Graph::hypers.
  SlotRandom random;               ///< The slot's counted randomness.
  /// State of the parts, by CompiledGraph::parts, owned by the arena; empty for a plan without parts.
  std::span<std::unique_ptr<Kept>> kept = {};
  /// The team, of at most CompiledGraph::threads threads, that shares the work of large kernels; null: the caller works
  /// alone. Results are the same bits.
  Team* team = nullptr;
  Coding* coding = nullptr;      ///< Encoder of a plan with CompiledGraph::encoded; null for others.
  const Apply* apply = nullptr;  ///< Takes gradients of a plan with CompiledGraph::applies; null for others.

  template <typename T>
  [[nodiscard]] T* at(const Tensor& t) const {
    return reinterpret_cast<T*>(buffers[static_cast<std::size_t>(t.buffer)]) + t.offset;
  }
  /// The thread's part of Builder::scratch().
  template <typename T>
  [[nodiscard]] T* own(const Tensor& scratch, int thread) const {
    return at<T>(scratch) + thread * scratch.strides[0];
  }
};

using Kernel = std::function<void(const Run&)>;

/// A layer whose weight's gradient reads a value that is encoded. In the value's memory its channels are last.
struct LayerInput {
  std::size_t weight = 0;  ///< Position in Graph::weights.
  std::int64_t channels = 1, groups = 1;

  bool operator==(const LayerInput&) const = default;
};

/// What a batch norm's input lies encoded as: (x - mean) * deviation, by channel.
struct Standard {
  Tensor mean, deviation;  ///< [channels]; deviation: its inverse
};

/// A value that lies encoded (fusion/codec) between forward and backward.
struct EncodedValue {
  std::int64_t elements = 0;  ///< 0: it is not encoded after all.
  std::int64_t piece = 1;     ///< Elements that a kernel decodes at a time.
  std::vector<LayerInput> layers;
  std::optional<Standard> standard = {};  ///< If it is the input of a batch norm, the one of `layers`.
  Tensor room = {};                       ///< [bytes]: memory for as much as it is foreseen to take.
};

/// Immutable; any number of threads or teams may run it, each with an arena of its own.
struct CompiledGraph {
  static constexpr std::size_t kOutside = static_cast<std::size_t>(-1);

  /// Origin of a kernel, and the tensors that it reads and writes. For profiles.
  struct KernelInfo {
    std::size_t node = static_cast<std::size_t>(-1);  ///< Position in the graph; -1: no node.
    std::string op;                                   ///< The node's op.
    bool backward = false;
    std::string algorithm;  ///< The algorithm, where the op has several; otherwise empty.
    std::int64_t bytes = 0;
    std::vector<Dims> sizes;  ///< Sizes of the tensors.
  };

  int threads = 1;  ///< Most threads of a team that may run it; each has scratch memory.
  std::vector<Kernel> kernels;
  std::size_t backward = 0;       ///< Position of the backward's first kernel; the number of kernels if there is none.
  std::vector<KernelInfo> infos;  ///< By kernel.
  /// By buffer: bytes from the arena's begin; kOutside for weights and constants. Behind the buffers of tensors stand
  /// the places that some of them take by turns: one until the value is given away, another when it is brought back.
  std::vector<std::size_t> offsets;
  std::size_t arena_bytes = 0;
  std::size_t recomputed = 0;  ///< How many of the kernels compute again what was not kept for the backward.
  std::vector<EncodedValue> encoded;
  std::vector<Tensor> weights;  ///< Graph::weights' order; their buffers are the caller's, row-major.
  /// Gradients of the trained weights that the loss depends on, in the weights' order, complete when the run ends. None
  /// if the plan applies them.
  std::vector<WeightGradient> gradients;
  bool applies = false;        ///< Gradients are given to Run::apply while the run goes on.
  std::vector<Tensor> inputs;  ///< Graph::inputs' order: filled by the caller before the run, row-major.
  /// Tensors that were known when the plan was made, row-major; read only.
  struct Constant {
    int buffer = -1;
    std::vector<std::byte> bytes;
  };
  std::vector<Constant> constants;
  std::vector<Tensor> outputs;  ///< Graph::outputs' order; of any strides.
  /// By part that a library runs: its ops, in order, none twice. Everything else has a compiler here.
  std::vector<std::vector<std::string>> parts;

  /// The weight's gradient when the run ends; undefined where there is none.
  [[nodiscard]] Tensor gradient(std::size_t weight) const;
};

/// Memory that one thread, or a team, runs plans in. It grows to the largest plan's arena and is kept.
class Arena {
 public:
  /// Base addresses of the plan's buffers, those of weights null; valid until another plan is bound. The plan must
  /// outlive that: its constants stay where they are.
  [[nodiscard]] std::span<std::byte*> bind(const CompiledGraph& plan);
  /// Run::kept for the plan that was bound last.
  [[nodiscard]] std::span<std::unique_ptr<Kept>> kept() { return kept_; }

 private:
  struct Free {
    void operator()(std::byte* memory) const;
  };
  std::unique_ptr<std::byte[], Free> memory_;
  std::size_t bytes_ = 0;
  const CompiledGraph* bound_ = nullptr;
  std::vector<std::byte*> buffers_;
  std::vector<std::unique_ptr<Kept>> kept_;
};

}  // namespace hfta::fusion::cpu
