#include "fusion/cpu/part_graph.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "fusion/cpu/aliases.hpp"
#include "fusion/graph/uses.hpp"
#include "fusion/op_traits.hpp"

namespace hfta::fusion::cpu {
namespace {

Arg literal_of(const Number& number) {
  return std::visit([](auto x) { return Arg(x); }, number);
}

std::int64_t integer_of(const LoweringContext& site, ValueId id) {
  const auto* whole = std::get_if<std::int64_t>(&*site.b.number(id));
  if (whole == nullptr) site.fail("a size is no integer");
  return *whole;
}

// A part's graph while it is put together: values get new ids.
class PartMaker {
 public:
  explicit PartMaker(Builder& b) : b_(b), makers_(makers_of(b.graph())) { part_.graph.hypers = b.graph().hypers; }

  void input(ValueId id) {
    const Tensor& tensor = b_.value(id);
    const bool wanted = b_.wants_gradient(tensor);
    part_.graph.weights.push_back(
        {"", tensor.sizes, tensor.dtype, {}, wanted, mapped(id, tensor.sizes, tensor.dtype), nullptr, {}});
    part_.inputs.push_back(tensor);
    part_.known.push_back(b_.constant_bytes(tensor));
  }

  // `nodes`: those of the part.
  void call(std::size_t position, const std::vector<std::size_t>& nodes) {
    const LoweringContext site(b_, position);
    Node node = with_literals(site);
    const bool of_others = overwrites(node.op) && !seen_later(b_.graph(), position) && !made_within(site, nodes);
    for (Arg& arg : node.args) for_each_value(arg, [&](ValueId& id) { id = mapped(id); });
    if (of_others) node.args[0] = copied(argument_as<ValueId>(node, 0), node);
    for (ValueId& id : node.outputs) {
      if (id == kNoValue) continue;
      if (b_.graph().values[static_cast<std::size_t>(id)].number) site.fail("it gives a number of the data");
      id = mapped(id);
    }
    part_.graph.nodes.push_back(std::move(node));
    part_.index.push_back(static_cast<int>(b_.random_key(position)));
  }

  PartGraph finish(const std::vector<ValueId>& outputs) {
    for (const ValueId id : outputs) part_.graph.outputs.push_back(mapped(id));
    return std::move(part_);
  }

 private:
  // Whether the memory that the call writes was made by one of the part's own calls.
  [[nodiscard]] bool made_within(const LoweringContext& site, const std::vector<std::size_t>& nodes) const {
    const auto* to = site.argument<ValueId>(0);
    if (to == nullptr) return false;
    const std::set<ValueId> shared = sharing_memory(b_.graph(), *to, site.position());
    return std::none_of(shared.begin(), shared.end(), [&](ValueId id) {
      const std::size_t maker = makers_[static_cast<std::size_t>(id)];
      return maker == kNobody || !std::binary_search(nodes.begin(), nodes.end(), maker);
    });
  }

  // A copy of an input, for a call that writes it: the input is not the part's to write.
  ValueId copied(ValueId id, const Node& reader) {
    const auto copy = static_cast<ValueId>(part_.graph.values.size());
    part_.graph.values.push_back(part_.graph.values[static_cast<std::size_t>(id)]);
    Node clone{"aten::clone", {id, std::monostate{}}, {copy}, reader.path, reader.where};
    part_.graph.nodes.push_back(std::move(clone));
    part_.index.push_back(part_.index.empty() ? 0 : part_.index.back());
    return copy;
  }

  ValueId mapped(ValueId id) {
    const Value& value = b_.graph().values[static_cast<std::size_t>(id)];
    return mapped(id, value.shape, value.dtype);
  }

  ValueId mapped(ValueId id, const Shape& shape, DType dtype) {
    const auto [at, added] = ids_.try_emplace(id, static_cast<ValueId>(part_.graph.values.size()));
    if (added) part_.graph.values.push_back({"", shape, dtype});
    return at->second;
  }

  Builder& b_;
  std::vector<std::size_t> makers_;  ///< By value.
  PartGraph part_;
  std::map<ValueId, ValueId> ids_;
};

}  // namespace

Node with_literals(const LoweringContext& site) {
  Node node = site.node();
  const auto is_number = [&](ValueId id) { return id != kNoValue && site.b.number(id).has_value(); };
  for (Arg& arg : node.args) {
    if (const auto* id = std::get_if<ValueId>(&arg); id != nullptr && is_number(*id)) {
      arg = literal_of(*site.b.number(*id));
    } else if (const auto* ids = std::get_if<std::vector<ValueId>>(&arg)) {
      if (std::any_of(ids->begin(), ids->end(), is_number)) site.fail("a number stands in a list of tensors");
    } else if (auto* sizes = std::get_if<std::vector<Size>>(&arg)) {
      std::vector<std::int64_t> whole;
      for (const Size& size : *sizes) {
        if (size.value != kNoValue && !is_number(size.value)) site.fail("a size is not known beforehand");
        whole.push_back(size.value == kNoValue ? size.number : integer_of(site, size.value));
      }
      arg = whole;
    }
  }
  return node;
}

PartGraph part_graph(Builder& b, const std::vector<std::size_t>& nodes, const std::vector<ValueId>& read,
                     const std::vector<ValueId>& given) {
  PartMaker maker(b);
  for (const ValueId id : read) maker.input(id);
  for (const std::size_t i : nodes) maker.call(i, nodes);
  return maker.finish(given);
}

}  // namespace hfta::fusion::cpu
