// Samples in results of ops that work element by element, along dimensions, or change shapes.
#include <algorithm>
#include <limits>

#include "fusion/passes/row_rules.hpp"
#include "fusion/passes/schema.hpp"

namespace hfta::fusion {
namespace {

using Found = std::optional<SampleDim>;

std::optional<std::size_t> nonnegative(std::int64_t dim, std::size_t rank) {
  const auto count = static_cast<std::int64_t>(rank);
  if (dim < -count || dim >= count) return std::nullopt;
  return static_cast<std::size_t>(dim < 0 ? dim + count : dim);
}

// Samples lie at the same distance from the last dimension in all tensors that have them; the others have no extent
// there that the samples could be paired with.
Found elements(const RowsCall& call, std::size_t o) {
  const std::size_t rank = call.output(o).shape.size();
  std::optional<RowsInput> first;
  for (const RowsInput& input : call.tensors()) {
    if (!input.of_sample()) continue;
    if (first && !input.is_aligned_with(*first)) return std::nullopt;
    if (!first) first = input;
  }
  if (!first || first->from_right() > rank) return std::nullopt;
  for (const RowsInput& input : call.tensors()) {
    if (input.of_sample() || input.rank() < first->from_right()) continue;
    if (!input.of_nothing() || input.value->shape[input.rank() - first->from_right()] != 1) return std::nullopt;
  }
  return SampleDim{rank - first->from_right(), first->at.parts, first->at.outer};
}

std::optional<std::vector<std::int64_t>> dims_of(const RowsCall& call) {
  for (const char* name : {"dim", "dims", "axis"}) {
    if (auto dims = call.integers(name); dims && !dims->empty()) return dims;
  }
  return std::nullopt;
}

// x[:], which exporters write for the dimensions in front of one that is cut.
bool takes_all(const RowsCall& call) {
  if (base_name(call.node().op) != "slice") return false;
  const Arg &start = argument_of(call.node(), "start"), &end = argument_of(call.node(), "end");
  const bool from_first = std::holds_alternative<std::monostate>(start) || start == Arg(std::int64_t{0});
  const bool to_last =
      std::holds_alternative<std::monostate>(end) || end == Arg(std::numeric_limits<std::int64_t>::max());
  return from_first && to_last && argument_of(call.node(), "step") == Arg(std::int64_t{1});
}

Found along(const RowsCall& call, std::size_t o) {
  Found at;
  std::size_t rank = 0;
  for (const RowsInput& input : call.tensors()) {
    const bool chooses = input.of_nothing() && (call.tensor("index") || call.tensor("repeats"));
    if (chooses && base_name(call.node().op) != "gather") continue;
    if (!input.of_sample() || (at && (*at != input.samples() || rank != input.rank()))) return std::nullopt;
    at = input.samples();
    rank = input.rank();
  }
  const auto dims = dims_of(call);
  if (!at || !dims) return std::nullopt;
  const std::size_t given = call.output(o).shape.size();
  std::size_t before = 0;
  for (const std::int64_t d : *dims) {
    const auto dim = nonnegative(d, std::max(rank, given));
    if (!dim || (given <= rank && *dim == at->dim && !takes_all(call))) return std::nullopt;
    before += *dim < at->dim || (given > rank && *dim == at->dim) ? 1 : 0;
  }
  if (given == rank) return at;
  if (given + dims->size() == rank) return SampleDim{at->dim - before, at->parts, at->outer};  // reduced
  if (given == rank + dims->size()) return SampleDim{at->dim + before, at->parts, at->outer};  // stacked
  return std::nullopt;
}

std::int64_t per_sample(const Value& value) {
  std::int64_t elements = 1;
  for (const std::int64_t size : value.shape) elements *= size < 0 ? -size : size;
  return elements;
}

std::int64_t elements_before(const Value& value, std::size_t dim) {
  std::int64_t elements = 1;
  for (std::size_t d = 0; d < dim; ++d) elements *= value.shape[d];
  return elements;
}

// In the order of elements, all samples stand one behind another so many times, before the reshape and after it.
Found reshaped(const RowsCall& call, std::size_t o) {
  const RowsInput input = call.tensors().front();
  const Value& output = call.output(o);
  const Found to = sample_dim(output);
  if (!to || per_sample(*input.value) != per_sample(output)) return std::nullopt;
  const std::int64_t times = elements_before(*input.value, input.at.dim) * input.at.outer;
  const std::int64_t before = elements_before(output, to->dim);
  if (before == 0 || times % before != 0) return std::nullopt;
  const std::int64_t outer = times / before;
  if (outer == 0 || to->parts % outer != 0) return std::nullopt;
  return SampleDim{to->dim, to->parts / outer, outer};
}

// Aligned at the last dimension. Of a tensor of no sample every copy is alike.
Found expanded(const RowsCall& call, std::size_t o) {
  const RowsInput input = call.tensors().front();
  const Value& output = call.output(o);
  const auto at = sample_dim(output);
  if (!at || output.shape.size() < input.rank() || input.of_nothing()) return at;
  const std::size_t from_right = output.shape.size() - at->dim;
  if (input.from_right() != from_right || input.at.parts * input.at.outer != at->parts) return std::nullopt;
  return SampleDim{at->dim, input.at.parts, input.at.outer};
}

Found permuted(const RowsCall& call, std::size_t o) {
  const RowsInput input = call.tensors().front();
  const std::size_t rank = input.rank();
  if (call.output(o).shape.size() != rank || rank == 0) return std::nullopt;
  std::vector<std::size_t> from(rank);  // by dimension of the result
  for (std::size_t d = 0; d < rank; ++d) from[d] = d;
  if (const auto dims = call.integers("dims"); dims && dims->size() == rank) {
    for (std::size_t d = 0; d < rank; ++d) {
      const auto dim = nonnegative((*dims)[d], rank);
      if (!dim) return std::nullopt;
      from[d] = *dim;
    }
  } else {
    std::optional<std::size_t> a, b;
    for (const auto& [first, second] : {std::pair("dim0", "dim1"), std::pair("axis0", "axis1")}) {
      const auto one = call.integers(first), other = call.integers(second);
      if (!one || !other) continue;
      a = nonnegative(one->front(), rank);
      b = nonnegative(other->front(), rank);
      if (!a || !b) return std::nullopt;
    }
    const std::string_view name = base_name(call.node().op);
    if (!a && (name == "t" ? rank == 2 : (name == "mT" || name == "adjoint") && rank >= 2)) a = rank - 2, b = rank - 1;
    if (!a || !b) return std::nullopt;
    std::swap(from[*a], from[*b]);
  }
  const SampleDim at = input.samples();
  const auto to = std::find(from.begin(), from.end(), at.dim);
  if (to == from.end()) return std::nullopt;
  return SampleDim{static_cast<std::size_t>(to - from.begin()), at.parts, at.outer};
}

// Whatever gave its sizes.
Found filled(const RowsCall& call, std::size_t o) { return sample_dim(call.output(o)); }

template <std::size_t kCount>
Found inner(const RowsCall& call, std::size_t /*o*/) {
  const std::vector<RowsInput> inputs = call.tensors();
  if (inputs.size() != 1 || inputs.front().from_right() <= kCount) return std::nullopt;
  return inputs.front().samples();
}

Found padded(const RowsCall& call, std::size_t /*o*/) {
  auto pad = call.integers("pad");
  if (!pad) pad = call.integers("padding");
  const std::vector<RowsInput> inputs = call.tensors();
  if (!pad || inputs.size() != 1 || inputs.front().from_right() <= pad->size() / 2) return std::nullopt;
  return inputs.front().samples();
}

}  // namespace

RowRule shape_row_rule(Rows rows) {
  switch (rows) {
    case Rows::kElements:
      return elements;
    case Rows::kAlong:
      return along;
    case Rows::kReshaped:
      return reshaped;
    case Rows::kExpanded:
      return expanded;
    case Rows::kPermuted:
      return permuted;
    case Rows::kFilled:
      return filled;
    case Rows::kInner1:
      return inner<1>;
    case Rows::kInner2:
      return inner<2>;
    case Rows::kInner3:
      return inner<3>;
    case Rows::kPadded:
      return padded;
    default:
      return nullptr;
  }
}

}  // namespace hfta::fusion
