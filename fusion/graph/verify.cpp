#include "fusion/verify.hpp"

#include <fmt/format.h>

#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"
#include "fusion/graph/place.hpp"
#include "fusion/graph/sizes.hpp"
#include "fusion/graph/uses.hpp"

namespace hfta::fusion {
namespace {

class Verifier {
 public:
  explicit Verifier(const Graph& graph) : graph_(graph), made_(graph.values.size(), false) {}

  void run() {
    for (const Weight& weight : graph_.weights) check_weight(weight);
    check_names();
    for (const ValueId id : graph_.inputs) make(id, "the inputs");
    for (const Node& node : graph_.nodes) check_node(node);
    if (graph_.outputs.empty()) fail("the outputs", "found none, wanted one or more");
    for (const ValueId id : graph_.outputs) check_output(id, "the output");
    if (!graph_.objective) return;
    check_output(graph_.objective->loss, "the loss");
    if (graph_.objective->weight != kNoValue) check_output(graph_.objective->weight, "the loss's weight");
  }

 private:
  [[noreturn]] static void fail(const std::string& place, const std::string& what) {
    throw Error(ErrorKind::kConfig, place + ": " + what);
  }
  [[nodiscard]] const Value& value(ValueId id) const { return graph_.values[static_cast<std::size_t>(id)]; }

  void check_id(ValueId id, const std::string& place) const {
    if (id >= 0 && static_cast<std::size_t>(id) < graph_.values.size()) return;
    fail(place, fmt::format("found value {} of {}", id, graph_.values.size()));
  }

  void make(ValueId id, const std::string& place) {
    check_id(id, place);
    if (made_[static_cast<std::size_t>(id)])
      fail(place, fmt::format("makes '{}', which is there already", value(id).name));
    made_[static_cast<std::size_t>(id)] = true;
  }

  void use(ValueId id, const std::string& place) const {
    check_id(id, place);
    if (!made_[static_cast<std::size_t>(id)]) fail(place, fmt::format("uses '{}' before it is made", value(id).name));
  }

  void check_output(ValueId id, const std::string& place) const {
    use(id, place);
    if (value(id).number) fail(place, "found a number, wanted a tensor");
  }

  void check_weight(const Weight& weight) {
    make(weight.value, "weight '" + weight.name + "'");
    const Value& declared = value(weight.value);
    const auto differs = [&](const std::string& found, const std::string& wanted) {
      fail("weight '" + weight.name + "'", fmt::format("found {}, wanted {}", found, wanted));
    };
    const auto text = [](const Shape& shape, DType dtype) {
      return fmt::format("{} {}", name_of(dtype), to_text(shape));
    };
    if (declared.number) differs("a number", "a tensor");
    if (declared.shape != weight.shape || declared.dtype != weight.dtype) {
      differs(text(weight.shape, weight.dtype), text(declared.shape, declared.dtype));
    }
    for (const std::int64_t size : weight.shape) {
      if (size < 0) differs(to_text(weight.shape), "sizes that do not depend on the batch");
    }
    if (weight.pairs && (!is_floating(weight.dtype) || weight.shape.empty() || weight.shape.back() != 2)) {
      differs(text(weight.shape, weight.dtype), "pairs of real numbers");
    }
    if (!checked_bytes(weight.shape, weight.dtype, 1))
      differs(text(weight.shape, weight.dtype), "what a machine can hold");
    check_padding(weight);
    check_zero_row(weight);
    if (weight.stored == nullptr) return;
    const auto bytes = static_cast<std::int64_t>(weight.stored->bytes.size());
    if (weight.stored->shape != weight.model_shape() || is_complex(weight.stored->dtype) != weight.pairs) {
      differs(text(weight.stored->shape, weight.stored->dtype), text(weight.shape, weight.dtype));
    }
    const std::optional<std::int64_t> wanted = checked_bytes(weight.model_shape(), weight.stored->dtype, 1);
    if (!wanted) differs(text(weight.stored->shape, weight.stored->dtype), "what a machine can hold");
    if (bytes != *wanted) differs(fmt::format("{} bytes", bytes), fmt::format("{}", *wanted));
  }

  // A slot's state has each weight under its name.
  void check_names() const {
    std::set<std::string_view> names;
    for (const Weight& weight : graph_.weights) {
      if (weight.name.empty()) fail("the weights", "found one without a name");
      if (!names.insert(weight.name).second) fail("weight '" + weight.name + "'", "found two of that name");
    }
  }

  static void check_zero_row(const Weight& weight) {
    const int row = weight.init.zero_row;
    const std::int64_t rows = weight.shape.empty() ? 0 : weight.shape.front();
    if (row < 0 || row < rows) return;
    fail("weight '" + weight.name + "'", fmt::format("found row {} to be zero, of {}", row, rows));
  }

  void check_padding(const Weight& weight) const {
    if (!weight.padding) return;
    const int used = weight.padding->used.index;
    const bool there = used >= 0 && static_cast<std::size_t>(used) < graph_.hypers.size();
    if (there && weight.padding->dim < weight.shape.size()) return;
    fail("weight '" + weight.name + "'",
         fmt::format("found padding of dimension {} of {} by parameter {} of {}", weight.padding->dim,
                     weight.shape.size(), used, graph_.hypers.size()));
  }

  void check_node(const Node& node) {
    const std::string place = place_of(node);
    for (const Arg& arg : node.args) check_argument(arg, place);
    if (is_number_op(node.op)) check_number_op(node, place);
    for (const ValueId id : node.outputs) {
      // A graph of layers overwrites: what an op gives may be the value that it was given.
      if (id != kNoValue && !overwritten(node, id)) make(id, place);
    }
  }

  static bool overwritten(const Node& node, ValueId id) {
    const auto* first = node.args.empty() ? nullptr : std::get_if<ValueId>(&node.args[0]);
    return first != nullptr && *first == id;
  }

  void check_argument(const Arg& arg, const std::string& place) const {
    for_each_value(arg, [&](ValueId id) { use(id, place); });
    if (const auto* sizes = std::get_if<std::vector<Size>>(&arg)) {
      for (const Size& size : *sizes) {
        if (size.value == kNoValue || value(size.value).number) continue;
        fail(place, fmt::format("found the tensor '{}' as a size, wanted a number", value(size.value).name));
      }
    }
    if (const auto* hyper = std::get_if<HyperRef>(&arg)) {
      const bool there = hyper->index >= 0 && static_cast<std::size_t>(hyper->index) < graph_.hypers.size();
      if (!there) fail(place, fmt::format("found parameter {} of {}", hyper->index, graph_.hypers.size()));
    }
  }

  // "number::size" and its like look at a tensor first; whatever else stands in one of these calls is a number.
  void check_number_op(const Node& node, const std::string& place) const {
    const bool looks = node.op == "number::size" || node.op == "number::numel" || node.op == "number::stride";
    if (looks && node.args.empty()) fail(place, "found no argument, wanted a tensor");
    for (std::size_t i = 0; i < node.args.size(); ++i) {
      const Arg& arg = node.args[i];
      const auto* id = std::get_if<ValueId>(&arg);
      const bool tensor = id != nullptr && !value(*id).number;
      const bool number = (id != nullptr && value(*id).number) || std::holds_alternative<std::int64_t>(arg) ||
                          std::holds_alternative<double>(arg) || std::holds_alternative<bool>(arg);
      const bool wants_tensor = looks && i == 0;
      if (wants_tensor ? !tensor : !number) {
        fail(place, fmt::format("argument {} is no {}", i, wants_tensor ? "tensor" : "number"));
      }
    }
    for (const ValueId id : node.outputs) {
      check_id(id, place);
      if (!value(id).number) fail(place, fmt::format("gives '{}', which is said to be a tensor", value(id).name));
    }
  }

  const Graph& graph_;
  std::vector<bool> made_;
};

}  // namespace

void verify(const Graph& graph) { Verifier(graph).run(); }

}  // namespace hfta::fusion
