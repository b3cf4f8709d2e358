// Samples in results of products, layers and lookups.
#include <algorithm>

#include "fusion/passes/row_rules.hpp"
#include "fusion/passes/schema.hpp"

namespace hfta::fusion {
namespace {

using Found = std::optional<SampleDim>;

bool is_known(const std::optional<RowsInput>& input) { return !input || input->of_nothing(); }

// Whether the tensors of those names, where they are given, are of no sample.
template <typename... Names>
bool are_known(const RowsCall& call, Names... names) {
  return (is_known(call.tensor(names)) && ...);
}

// Size at that many dimensions from the last, 1 being the last; 1 where there are not so many.
std::int64_t size_from_right(const RowsInput& input, std::size_t from_right) {
  return input.rank() < from_right ? 1 : input.value->shape[input.rank() - from_right];
}

// Distance from the last dimension of the samples in a product of the last two dimensions; 0: it mixes them.
std::size_t product(const RowsInput& a, const RowsInput& b) {
  if (a.rank() < 2 || b.rank() < 2) return 0;
  constexpr std::size_t kRows = 2, kColumns = 1;
  if (a.of_sample() && b.of_sample()) {
    return a.is_aligned_with(b) && a.from_right() > kRows ? a.from_right() : 0;
  }
  const RowsInput &of_sample = a.of_sample() ? a : b, &known = a.of_sample() ? b : a;
  if (!known.of_nothing()) return 0;
  const std::size_t at = of_sample.from_right();
  if (at > kRows) return size_from_right(known, at) == 1 ? at : 0;
  return at == (a.of_sample() ? kRows : kColumns) ? at : 0;
}

Found matrices(const RowsCall& call, std::size_t o) {
  const bool added = call.tensor("mat1").has_value() || call.tensor("batch1").has_value();
  const std::vector<RowsInput> inputs = call.tensors();
  if (inputs.size() != (added ? 3 : 2)) return std::nullopt;
  const RowsInput &a = inputs[added ? 1 : 0], &b = inputs[added ? 2 : 1];
  if (!a.of_sample() && !b.of_sample()) return std::nullopt;
  std::size_t from_right = product(a, b);
  const bool vector = a.of_sample() && a.rank() >= 2 && b.of_nothing() && b.rank() == 1;
  if (vector && a.from_right() > 1) from_right = a.from_right() - 1;  // the last dimension is summed over
  const std::size_t rank = call.output(o).shape.size();
  if (from_right == 0 || from_right > rank) return std::nullopt;
  SampleDim at = (a.of_sample() ? a : b).at;
  if (added) {
    const RowsInput& sum = inputs[0];
    const bool aligned =
        sum.of_sample() && sum.from_right() == from_right && sum.at.parts == at.parts && sum.at.outer == at.outer;
    if (!aligned && !(sum.of_nothing() && size_from_right(sum, from_right) == 1)) return std::nullopt;
  }
  at.dim = rank - from_right;
  return at;
}

Found linear(const RowsCall& call, std::size_t /*o*/) {
  const RowsInput input = *call.tensor("input");
  if (!input.of_sample() || input.from_right() < 2 || !are_known(call, "weight", "bias")) return std::nullopt;
  if (call.tensor("weight")->rank() != 2) return std::nullopt;
  return input.samples();
}

Found convolved(const RowsCall& call, std::size_t /*o*/) {
  const RowsInput input = *call.tensor("input");
  if (!input.of_sample() || input.samples().dim != 0 || !are_known(call, "weight", "bias")) return std::nullopt;
  if (call.tensor("weight")->rank() != input.rank()) return std::nullopt;  // else there is no dimension of samples
  return input.samples();
}

Found attention(const RowsCall& call, std::size_t /*o*/) {
  const RowsInput query = *call.tensor("query"), key = *call.tensor("key"), value = *call.tensor("value");
  if (!query.of_sample() || query.from_right() <= 2) return std::nullopt;
  for (const RowsInput& other : {key, value}) {
    if (!other.of_sample() || other.samples() != query.samples() || other.rank() != query.rank()) return std::nullopt;
  }
  if (const auto mask = call.tensor("attn_mask")) {
    const bool aligned = mask->of_sample() && mask->is_aligned_with(query);
    if (!aligned && !(mask->of_nothing() && size_from_right(*mask, query.from_right()) == 1)) return std::nullopt;
  }
  return query.samples();
}

Found layer_norm(const RowsCall& call, std::size_t /*o*/) {
  const RowsInput input = *call.tensor("input");
  const auto shape = call.integers("normalized_shape");
  if (!input.of_sample() || !shape || input.from_right() <= shape->size()) return std::nullopt;
  if (!are_known(call, "weight", "bias")) return std::nullopt;
  return input.samples();
}

Found channels(const RowsCall& call, std::size_t o) {
  const RowsInput input = *call.tensor("input");
  const Arg* training = find_argument(call.node(), "training");
  if (training != nullptr && *training != Arg(false)) return std::nullopt;
  if (o != 0 || !input.of_sample() || input.rank() < 2 || input.samples().dim == 1) return std::nullopt;
  if (!are_known(call, "weight", "bias", "running_mean", "running_var")) return std::nullopt;
  const bool by_statistics = call.tensor("running_mean") && call.tensor("running_var");
  return by_statistics ? Found(input.samples()) : std::nullopt;
}

Found groups(const RowsCall& call, std::size_t /*o*/) {
  const RowsInput input = *call.tensor("input");
  if (!input.of_sample() || input.samples().dim != 0 || !are_known(call, "weight", "bias")) return std::nullopt;
  return input.samples();
}

Found looked_up(const RowsCall& call, std::size_t /*o*/) {
  const RowsInput indices = *call.tensor("indices");
  if (!indices.of_sample() || !are_known(call, "weight")) return std::nullopt;
  return indices.samples();
}

Found recurrent(const RowsCall& call, std::size_t o) {
  const std::vector<RowsInput> inputs = call.tensors();
  const Arg* batch_first = find_argument(call.node(), "batch_first");
  if (batch_first == nullptr || inputs.empty()) return std::nullopt;
  const SampleDim states{1}, sequence{*batch_first == Arg(true) ? std::size_t{0} : std::size_t{1}};
  if (!inputs[0].of_sample() || inputs[0].rank() != 3 || inputs[0].samples() != sequence) return std::nullopt;
  for (std::size_t i = 1; i < inputs.size(); ++i) {
    const bool state = inputs[i].of_sample() && inputs[i].rank() == 3 && inputs[i].samples() == states;
    if (!state && !inputs[i].of_nothing()) return std::nullopt;
  }
  return o == 0 ? sequence : states;
}

// The tensors that index in x[i, j], by dimension; nullopt: none, or in a form that has no rule.
struct Indices {
  std::vector<std::optional<RowsInput>> by_dim;
  std::size_t first = 0, count = 0;  // dimensions that are indexed, one behind the other
  std::size_t rank = 0;              // rank of the indices together
  std::optional<SampleDim> samples;  // the samples in them together, where they have samples or places
};

std::optional<Indices> indices_of(const RowsCall& call) {
  const auto* ids = std::get_if<std::vector<ValueId>>(&argument_of(call.node(), "indices"));
  if (ids == nullptr) return std::nullopt;
  Indices all;
  for (std::size_t d = 0; d < ids->size(); ++d) {
    all.by_dim.emplace_back();
    if ((*ids)[d] == kNoValue) continue;
    const RowsInput index = call.input((*ids)[d]);
    if (index.depends_on == DependsOn::kMore || index.value->dtype == DType::kBool) return std::nullopt;
    if (all.count > 0 && all.first + all.count != d) return std::nullopt;
    if (all.count++ == 0) all.first = d;
    all.rank = std::max(all.rank, index.rank());
    all.by_dim.back() = index;
  }
  std::optional<std::size_t> from_right;
  for (const auto& index : all.by_dim) {
    if (!index || index->of_nothing()) continue;
    if (index->at.parts * index->at.outer != 1 || (from_right && *from_right != index->from_right()))
      return std::nullopt;
    from_right = index->from_right();
  }
  for (const auto& index : all.by_dim) {
    if (index && index->of_nothing() && from_right && size_from_right(*index, *from_right) != 1) return std::nullopt;
  }
  if (from_right) all.samples = SampleDim{all.rank - *from_right};
  return all.count == 0 ? std::nullopt : std::optional(all);
}

Found indexed(const RowsCall& call, std::size_t /*o*/) {
  const RowsInput self = *call.tensor("self");
  const std::optional<Indices> indices = indices_of(call);
  if (!indices || self.depends_on == DependsOn::kPlaces) return std::nullopt;
  const auto places = [](const auto& index) { return index && index->depends_on == DependsOn::kPlaces; };
  const bool any_places = std::any_of(indices->by_dim.begin(), indices->by_dim.end(), places);
  if (self.of_nothing()) {  // rows of a table
    if (any_places || !indices->samples) return std::nullopt;
    return SampleDim{indices->first + indices->samples->dim};
  }
  const SampleDim at = self.samples();
  const bool by_place = at.dim < indices->by_dim.size() && places(indices->by_dim[at.dim]);
  if (by_place) {  // each sample looks into itself
    const auto count = std::count_if(indices->by_dim.begin(), indices->by_dim.end(), places);
    if (count != 1 || at.parts * at.outer != 1) return std::nullopt;
    return SampleDim{indices->first + indices->samples->dim};
  }
  const bool own_dim = at.dim < indices->by_dim.size() && indices->by_dim[at.dim];
  if (own_dim || indices->samples) return std::nullopt;
  const std::size_t dim = at.dim < indices->first ? at.dim : at.dim - indices->count + indices->rank;
  return SampleDim{dim, at.parts, at.outer};
}

}  // namespace

RowRule layer_row_rule(Rows rows) {
  switch (rows) {
    case Rows::kMatrices:
      return matrices;
    case Rows::kLinear:
      return linear;
    case Rows::kConvolved:
      return convolved;
    case Rows::kAttention:
      return attention;
    case Rows::kLayerNorm:
      return layer_norm;
    case Rows::kChannels:
      return channels;
    case Rows::kGroups:
      return groups;
    case Rows::kLooked:
      return looked_up;
    case Rows::kRecurrent:
      return recurrent;
    case Rows::kIndexed:
      return indexed;
    default:
      return nullptr;
  }
}

}  // namespace hfta::fusion
