#pragma once
/// Samples for training steps and evaluation: parts of a set that is on a device, or in a file.

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "fusion/dataset.hpp"
#include "fusion/graph.hpp"

namespace hfta::fusion {

/// Arrays of samples that are computed when they are first taken. Thread-safe.
class SampleSource {
 public:
  SampleSource() = default;
  virtual ~SampleSource() = default;
  SampleSource(const SampleSource&) = delete;
  SampleSource& operator=(const SampleSource&) = delete;

  [[nodiscard]] virtual std::int64_t size() const = 0;
  /// Elements of a sample in a column (one of the arrays), and their type.
  [[nodiscard]] virtual std::int64_t stride(std::size_t column) const = 0;
  [[nodiscard]] virtual at::ScalarType type(std::size_t column) const = 0;
  /// The samples at `index` (int64, on the host), [n, ...] of every column, in memory of their own.
  [[nodiscard]] virtual std::vector<at::Tensor> rows(const at::Tensor& index) const = 0;
  /// All samples of a column, [N, ...]; undefined as long as some of them would have to be computed.
  [[nodiscard]] virtual at::Tensor all(std::size_t column) const = 0;
};

/// All samples of one array, in the type that they are stored in. Batches taken from it have the type that the model or
/// the loss takes. A value type; copies share the numbers.
class SampleArray {
 public:
  SampleArray() = default;
  /// [N, ...] on a device, already of the type taken.
  SampleArray(const at::Tensor& all);  // NOLINT(google-explicit-constructor): a tensor is an array of samples
  /// [N, ...] on a device; samples become `type` when they are taken out.
  SampleArray(const at::Tensor& stored, at::ScalarType type);
  /// `size` samples on the host, in memory or in a file.
  SampleArray(Field field, std::int64_t size, at::ScalarType type);
  /// The samples of a source's column, on the host.
  SampleArray(std::shared_ptr<const SampleSource> source, std::size_t column);

  [[nodiscard]] std::int64_t size() const { return size_; }
  /// Elements of one sample.
  [[nodiscard]] std::int64_t stride() const;
  /// The type of batches taken from it.
  [[nodiscard]] at::ScalarType type() const { return type_; }
  [[nodiscard]] at::Device device() const { return tensor_.defined() ? tensor_.device() : at::Device(at::kCPU); }
  /// The samples as stored, in one piece; undefined: they are on the host, and only a Field knows their layout.
  [[nodiscard]] const at::Tensor& stored() const { return tensor_; }
  /// Whether no sample has to be computed any more.
  [[nodiscard]] bool at_hand() const { return source_ == nullptr || source_->all(column_).defined(); }
  /// The source whose column the array is; null: it is not computed.
  [[nodiscard]] const SampleSource* source() const { return source_.get(); }
  [[nodiscard]] std::size_t column() const { return column_; }
  /// `rows` of stored(), as batches have them.
  [[nodiscard]] at::Tensor taken(const at::Tensor& rows) const;
  /// The samples at `index`, int64 on the array's device. Throws Error{kConfig} for a file that was changed.
  [[nodiscard]] at::Tensor at(const at::Tensor& index) const;
  /// The samples [begin, end): a view, if the stored type is the type taken.
  [[nodiscard]] at::Tensor range(std::int64_t begin, std::int64_t end) const;
  /// Copies `n` samples to `out` on the host: those of `order`, or, without one (nullptr), those from `begin` on.
  /// REQUIRES an array on the host.
  void copy(const std::int64_t* order, std::int64_t begin, std::int64_t n, std::byte* out) const;

 private:
  [[nodiscard]] DType gathered_type() const;
  void gather(const std::int64_t* order, std::int64_t begin, std::int64_t n, std::byte* out) const;
  [[nodiscard]] at::Tensor gathered(const std::int64_t* order, std::int64_t begin, std::int64_t n) const;
  [[nodiscard]] at::Tensor computed(const at::Tensor& index) const;

  at::Tensor tensor_;
  std::shared_ptr<const SampleSource> source_;  // where there is no tensor,
  std::size_t column_ = 0;
  Field field_;  // nor a source
  std::int64_t size_ = 0;
  at::ScalarType type_ = at::kFloat;
};

/// What samples are prepared for: layers that slots share may run otherwise in training than in evaluation.
enum class SampleUse {
  kTraining,    ///< Array::step().
  kEvaluation,  ///< Array::predict() and evaluate().
};

/// Samples of a set, with what all slots compute alike of them.
struct Samples {
  std::vector<SampleArray> inputs = {};  ///< The order of the model's inputs, M samples each.
  SampleArray target = {};               ///< M targets; none, if the model takes its labels as inputs.
  at::Tensor order = {};                 ///< The order in which samples are taken, int64; undefined: as they stand.
  std::int64_t begin = 0;                ///< The samples are those at [begin, end) of that order.
  std::int64_t end = -1;                 ///< -1: to its end.
  /// Filled in by Array::prepare; a step that finds none computes it for itself.
  std::shared_ptr<const std::vector<c10::IValue>> shared = nullptr;

  /// The number of samples, N.
  [[nodiscard]] std::int64_t size() const;
  /// Whether no sample of any array has to be computed any more.
  [[nodiscard]] bool at_hand() const;
  /// These samples, in memory, each computed once however many slots take them. The bits of a batch are those that
  /// taking it slot by slot would give.
  [[nodiscard]] Samples taken() const;
  /// The samples of an input of a task's graph: the targets are its last.
  [[nodiscard]] const SampleArray& array(std::size_t input) const {
    return input < inputs.size() ? inputs[input] : target;
  }
  /// These samples of `all`, which is target or one of inputs: a view where they stand in order.
  [[nodiscard]] at::Tensor of(const SampleArray& all) const;
};

/// The inputs of a task's graph, each as the graph declares it: a column [N, 1] may be stored as [N]. `take` gives the
/// batch of an array's samples.
[[nodiscard]] std::vector<at::Tensor> inputs_of(const Samples& samples, const Graph& graph,
                                                const std::function<at::Tensor(const SampleArray&)>& take);

/// Samples for one step of a chunk.
struct Batch {
  std::vector<Samples> parts = {};
  std::vector<int> part_of = {};  ///< Which of `parts` each slot of the chunk takes; empty: all take the first.
  bool last = false;              ///< Whether it is the epoch's last: slots that accumulate gradients take a step.
  std::int64_t place = 0;         ///< Batches of the epoch before it: phases have their turns by it.
  std::int64_t earlier = 0;       ///< Samples of the batch that other ranks have before these (BatchShare::first).
  bool counts = true;             ///< BatchShare::counts

  [[nodiscard]] std::size_t part_of_slot(int slot_of_chunk) const {
    return part_of.empty() ? 0 : static_cast<std::size_t>(part_of[static_cast<std::size_t>(slot_of_chunk)]);
  }
};

}  // namespace hfta::fusion
