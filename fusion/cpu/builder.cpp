#include "fusion/cpu/builder.hpp"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "base/checked.hpp"
#include "fusion/cpu/strided.hpp"
#include "fusion/graph/untrained.hpp"
#include "fusion/graph/uses.hpp"

namespace hfta::fusion::cpu {
namespace {

constexpr std::size_t kAlignment = 64;  // bytes: a cache line, the widest vector

std::size_t aligned(std::size_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

Dims with_batch(const Shape& shape, std::int64_t n) {
  Dims sizes = shape;
  for (std::int64_t& size : sizes) {
    if (size >= 0) continue;
    const std::optional<std::int64_t> of_batch = checked_mul(-size, n);
    if (!of_batch) throw ShapeError("found sizes beyond what a machine can hold");
    size = *of_batch;
  }
  return sizes;
}

// Zeros a whole buffer.
Kernel zero_kernel(const Tensor& all) {
  return [all](const Run& run) {
    std::memset(run.at<std::byte>({all.buffer, 0, {}, {}, DType::kUInt8}), 0,
                static_cast<std::size_t>(all.numel() * size_of(all.dtype)));
  };
}

}  // namespace

Builder::Builder(const Graph& graph, std::vector<int> index, DType dtype, std::int64_t n, bool training,
                 const TrainingOptions& options)
    : graph_(graph),
      index_(std::move(index)),
      dtype_(dtype),
      n_(n),
      training_(training),
      threads_(options.threads),
      values_(graph.values.size()),
      numbers_(graph.values.size()),
      readers_(graph.values.size()),
      makers_(makers_of(graph)),
      fused_(graph.nodes.size(), false),
      passes_on_(graph.nodes.size(), false),
      apart_(graph.nodes.size(), false),
      bounds_(options.bounds),
      apply_bytes_(options.apply_bytes) {
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    for (const ValueId id : inputs_of(graph.nodes[i])) readers_[static_cast<std::size_t>(id)].push_back(i);
  }
  for (const Weight& weight : graph.weights) {
    Tensor tensor = fresh(weight.shape, weight.dtype);
    buffer_of(tensor).outside = true;
    buffer_of(tensor).wanted = training && weight.trained;
    weights_.push_back(tensor);
    bind(weight.value, std::move(tensor));
  }
  for (const ValueId id : graph.inputs) {
    const Value& value = graph.values[static_cast<std::size_t>(id)];
    inputs_.push_back(fresh(with_batch(value.shape, n), value.dtype));
    bind(id, inputs_.back());
  }
}

void Builder::bind(ValueId id, Tensor tensor) {
  if (id != kNoValue) values_[static_cast<std::size_t>(id)] = std::move(tensor);
}

bool Builder::is_output(ValueId id) const {
  return std::find(graph_.outputs.begin(), graph_.outputs.end(), id) != graph_.outputs.end();
}

std::optional<std::size_t> Builder::only_reader(ValueId id) const {
  if (id == kNoValue) return std::nullopt;
  const auto& readers = readers_[static_cast<std::size_t>(id)];
  if (readers.size() != 1 || is_output(id)) return std::nullopt;
  const std::size_t reader = readers.front();
  return apart_[reader] || graph_.nodes[reader].no_gradient ? std::nullopt : std::optional(reader);
}

std::optional<std::size_t> Builder::maker(ValueId id) const {
  const std::size_t maker = id == kNoValue ? kNobody : makers_[static_cast<std::size_t>(id)];
  return maker == kNobody ? std::nullopt : std::optional(maker);
}

Tensor Builder::fresh(Dims sizes, DType dtype) {
  Tensor tensor;
  static_cast<void>(product(sizes));
  tensor.buffer = static_cast<int>(buffers_.size());
  tensor.strides = row_major(sizes);
  tensor.sizes = std::move(sizes);
  tensor.dtype = dtype;
  Buffer buffer;
  buffer.elements = tensor.numel();
  buffer.bytes = aligned(static_cast<std::size_t>(buffer.elements * size_of(dtype)));
  buffer.dtype = dtype;
  buffers_.push_back(buffer);
  return tensor;
}

Tensor Builder::scratch(std::int64_t elements) {
  const std::int64_t line = static_cast<std::int64_t>(kAlignment) / size_of(dtype_);
  return fresh({threads_, (elements + line - 1) / line * line});
}

Tensor Builder::constant(Dims sizes, DType dtype, std::vector<std::byte> bytes) {
  Tensor tensor = fresh(std::move(sizes), dtype);
  if (static_cast<std::int64_t>(bytes.size()) != tensor.numel() * size_of(dtype)) {
    throw ShapeError("found a constant " + to_text(tensor.sizes) + " of another size than its bytes");
  }
  buffer_of(tensor).outside = true;
  constants_.push_back({tensor.buffer, std::move(bytes)});
  return tensor;
}

const std::byte* Builder::constant_bytes(const Tensor& tensor) const {
  const auto found = std::find_if(constants_.begin(), constants_.end(),
                                  [&](const CompiledGraph::Constant& c) { return c.buffer == tensor.buffer; });
  return found == constants_.end() ? nullptr : found->bytes.data();
}

bool Builder::is_weight(const Tensor& tensor) const {
  return std::any_of(weights_.begin(), weights_.end(),
                     [&](const Tensor& weight) { return weight.buffer == tensor.buffer; });
}

std::size_t Builder::add_part(std::vector<std::string> ops) {
  parts_.push_back(std::move(ops));
  return parts_.size() - 1;
}

// The last guard of the memory that kernels work in: what they are given lies within its buffer.
void Builder::check_within(const Tensor& t) const {
  if (!t.defined()) return;
  const Buffer& buffer = buffers_[static_cast<std::size_t>(t.buffer)];
  std::optional<std::int64_t> last = t.offset;
  bool sound = t.offset >= 0 && t.sizes.size() == t.strides.size() && t.dtype == buffer.dtype;
  for (std::size_t d = 0; sound && d < t.sizes.size(); ++d) {
    if (t.sizes[d] == 0) return;
    const std::optional<std::int64_t> reach = checked_mul(t.sizes[d] - 1, t.strides[d]);
    last = reach ? checked_add(*last, *reach) : std::nullopt;
    sound = t.sizes[d] > 0 && t.strides[d] >= 0 && last.has_value();
  }
  if (!sound || *last >= std::max<std::int64_t>(buffer.elements, 1)) {
    throw ShapeError("found a tensor " + to_text(t.sizes) + " that reaches beyond its memory");
  }
}

Step Builder::step_of(const std::vector<Tensor>& touched, Kernel kernel) const {
  Step step{std::move(kernel), info_of(touched), {}};
  for (const Tensor& t : touched) {
    check_within(t);
    if (t.defined()) step.buffers.push_back(t.buffer);
  }
  return step;
}

void Builder::emit(const std::vector<Tensor>& touched, Kernel kernel) {
  schedule_.steps.push_back(step_of(touched, std::move(kernel)));
}

void Builder::recomputable(const Tensor& output, const std::vector<Tensor>& touched, Kernel kernel,
                           RecomputeCost cost) {
  if (!training_ || !recording_) return;
  Recomputation again{output.buffer, step_of(touched, std::move(kernel)), cost};
  again.step.info.backward = true;
  again.step.info.algorithm = schedule_.steps.back().info.algorithm;
  recomputations_.push_back(std::move(again));
}

std::optional<std::size_t> Builder::bounded(const Tensor& weight) const {
  if (bounds_ == nullptr) return std::nullopt;
  const std::optional<std::size_t> place = whole_weight(weight);
  return place && bounds_->has(*place) ? place : std::nullopt;
}

std::optional<std::size_t> Builder::whole_weight(const Tensor& tensor) const {
  const auto found =
      std::find_if(weights_.begin(), weights_.end(), [&](const Tensor& one) { return one.buffer == tensor.buffer; });
  const bool whole = found != weights_.end() && tensor.contiguous() && tensor.sizes == found->sizes;
  return whole ? std::optional(static_cast<std::size_t>(found - weights_.begin())) : std::nullopt;
}

void Builder::reads_for_gradient(const Tensor& x, const Tensor& weight, std::int64_t channels, std::int64_t groups,
                                 const Pieces& pieces) {
  read_for_layer(x, weight, {.layer = {.channels = channels, .groups = groups}}, pieces);
}

void Builder::reads_for_norm(const Tensor& x, const Tensor& weight, const Standard& standard, const Pieces& pieces) {
  read_for_layer(x, weight, {.layer = {.channels = standard.mean.numel()}, .standard = standard}, pieces);
}

void Builder::read_for_layer(const Tensor& x, const Tensor& weight, LayerReads::Read read, const Pieces& pieces) {
  const std::optional<std::size_t> place = bounded(weight);
  const Buffer& buffer = buffer_of(x);
  const bool whole = x.offset == 0 && x.dense() && x.numel() == buffer.elements && x.dtype == DType::kFloat32;
  if (!place || !whole) return;
  read.step = schedule_.steps.size() - 1;
  read.layer.weight = *place;
  read.piece = pieces.elements;
  if (pieces.elements > 0) {
    Step step = step_of(pieces.touched, {});
    step.info.algorithm = schedule_.steps.back().info.algorithm;
    read.by_pieces = [step, kernel = pieces.kernel](std::size_t i) {
      Step own = step;
      own.kernel = kernel(i);
      return own;
    };
  }
  layer_reads_.add(x.buffer, std::move(read));
}

void Builder::writes_in_place(const Tensor& from, const Tensor& to) {
  schedule_.steps.back().in_place = {from.buffer, to.buffer};
}

CompiledGraph::KernelInfo Builder::info_of(const std::vector<Tensor>& touched) const {
  CompiledGraph::KernelInfo info{node_, node_ == kNoNode ? "" : graph_.nodes[node_].op, in_backward_, "", 0, {}};
  for (const Tensor& t : touched) {
    if (!t.defined()) continue;
    info.bytes += t.numel() * size_of(t.dtype);
    info.sizes.push_back(t.sizes);
  }
  return info;
}

Tensor Builder::contiguous(const Tensor& t) {
  Dims order(t.sizes.size());
  std::iota(order.begin(), order.end(), 0);
  return in_order(t, order);
}

Tensor Builder::copied(const Tensor& t) {
  Tensor copy = fresh(t.sizes, t.dtype);
  emit({t, copy}, copy_kernel(t, copy, false));
  return copy;
}

Tensor Builder::in_order(const Tensor& t, std::span<const std::int64_t> order) {
  const Tensor ordered = t.permuted(order);
  if (ordered.contiguous()) return t;
  Tensor copy = fresh(t.sizes, t.dtype);
  const Dims strides = row_major(ordered.sizes);
  for (std::size_t d = 0; d < order.size(); ++d) copy.strides[static_cast<std::size_t>(order[d])] = strides[d];
  emit({t, copy}, copy_kernel(t, copy, false));
  differentiable({t}, {copy}, [this, t, copy] {
    const auto dy = gradient(copy);
    if (!dy) return;
    const Part dx = contribute(t);
    emit({*dy, dx.tensor}, copy_kernel(*dy, dx.tensor, dx.add));
  });
  return copy;
}

bool Builder::wants_gradient(const Tensor& t) const {
  return t.defined() && buffers_[static_cast<std::size_t>(t.buffer)].wanted;
}

void Builder::want_gradient(const Tensor& t) { buffer_of(t).wanted = true; }

bool Builder::differentiable(const std::vector<Tensor>& inputs, const std::vector<Tensor>& outputs,
                             std::function<void()> backward) {
  if (!training_ || !recording_) return false;
  if (std::none_of(inputs.begin(), inputs.end(), [this](const Tensor& t) { return wants_gradient(t); })) return false;
  for (const Tensor& output : outputs) want_gradient(output);
  backward_.push_back({node_, std::move(backward)});
  return true;
}

void Builder::set_gradient(const Tensor& t, int gradient) {
  buffer_of(t).gradient = gradient;
  buffer_of(t).reached = true;
}

Tensor Builder::gradient_view(const Tensor& t) {
  Tensor view = t;
  view.buffer = buffer_of(t).gradient;
  return view;
}

std::optional<Tensor> Builder::gradient(const Tensor& output) {
  if (buffer_of(output).gradient < 0) return std::nullopt;
  return gradient_view(output);
}

Builder::Part Builder::contribute(const Tensor& input) {
  Buffer& buffer = buffer_of(input);
  if (buffer.gradient >= 0) return {gradient_view(input), true};
  const std::int64_t elements = buffer.elements;
  const Tensor all = fresh({elements}, buffer.dtype);
  set_gradient(input, all.buffer);
  const bool covers = input.numel() == elements && input.dense();
  if (!covers) {
    emit({all}, zero_kernel(all));
  }
  return {gradient_view(input), !covers};
}

// Whether the gradient may be the input's whole one, as it lies in memory.
bool Builder::may_become(const Tensor& gradient, const Tensor& input) const {
  const Buffer& own = buffers_[static_cast<std::size_t>(input.buffer)];
  const std::int64_t given = buffers_[static_cast<std::size_t>(gradient.buffer)].elements;
  return own.gradient < 0 && own.elements == given && input.dense() && input.lies_like(gradient) &&
         input.numel() == own.elements && !own.outside;
}

void Builder::contribute(const Tensor& input, const Tensor& part) {
  const bool taken =
      std::count_if(buffers_.begin(), buffers_.end(), [&](const Buffer& b) { return b.gradient == part.buffer; }) > 1;
  if (may_become(part, input) && !taken) {
    set_gradient(input, part.buffer);
    return;
  }
  const Part to = contribute(input);
  emit({part, to.tensor}, copy_kernel(part, to.tensor, to.add));
}

// Each part has enough bytes to be applied at once.
std::vector<WeightGradient> Builder::gradient_in_rows(const Tensor& weight, std::int64_t multiple) {
  const std::optional<std::size_t> place = whole_weight(weight);
  if (apply_bytes_ == 0 || !place || has_gradient(weight)) return {};
  if (weight.dim() < 2 || only_reader(graph_.weights[*place].value) != node_) return {};
  const std::int64_t all = weight.size(0), of_row = weight.numel() / all, bytes = of_row * size_of(weight.dtype);
  const std::int64_t rows = (apply_bytes_ + bytes * multiple - 1) / (bytes * multiple) * multiple;
  if (2 * rows > all) return {};
  std::vector<WeightGradient> parts;
  for (std::int64_t first = 0; first < all; first += rows) {
    Dims sizes = weight.sizes;
    sizes[0] = std::min(rows, all - first);
    parts.push_back({*place, first * of_row, fresh(sizes, weight.dtype)});
  }
  in_rows_.insert(in_rows_.end(), parts.begin(), parts.end());
  return parts;
}

// Others that have the output's gradient as theirs have handed it on before: their backward is done with it.
void Builder::hand_on_gradient(const Tensor& output, const Tensor& input) {
  const Tensor whole = gradient_view(output);
  if (may_become(whole, input)) {
    hand_over_gradient(output, input);
  } else {
    contribute(input, whole);
  }
}

void Builder::hand_over_gradient(const Tensor& output, const Tensor& input) {
  const int gradient = buffer_of(output).gradient;
  for (Buffer& one : buffers_) {  // gradients that became the output's are read no more, either
    if (one.gradient == gradient) one.gradient = -1;
  }
  set_gradient(input, gradient);
}

void Builder::run_backward(const Tensor& loss) {
  if (loss.numel() != 1 || loss.dtype != dtype_) throw ShapeError("found a loss that is not one floating-point number");
  if (!wants_gradient(loss)) fail_untrained();
  schedule_.backward = schedule_.steps.size();
  const Part seed = contribute(loss);
  typed(dtype_, [&]<typename T>() {
    emit({seed.tensor},
         [=](const Run& run) { *run.at<T>(seed.tensor) = seed.add ? *run.at<T>(seed.tensor) + 1 : T{1}; });
  });
  emit_backward();
}

void Builder::run_backward(std::span<const Seed> seeds) {
  schedule_.backward = schedule_.steps.size();
  for (const Seed& seed : seeds) contribute(seed.value, seed.gradient);
  emit_backward();
}

void Builder::emit_backward() {
  in_backward_ = true;
  for (std::size_t i = backward_.size(); i-- > 0;) {
    begin_node(backward_[i].node);
    backward_[i].emit();
  }
  backward_.clear();
}

Tensor Builder::gradient_of_input(const Tensor& input) {
  if (const std::optional<Tensor> known = gradient(input)) return *known;
  Tensor zero = contribute(input).tensor;
  emit({zero}, zero_kernel(zero));
  return zero;
}

}  // namespace hfta::fusion::cpu
