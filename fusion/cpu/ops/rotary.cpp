// Rotary position embedding, written as x * cos + cat([-x2, x1]) * sin, as one kernel at the sum.
#include "fusion/cpu/kernels/rotary.hpp"

#include <algorithm>

#include "fusion/cpu/ops/common.hpp"
#include "fusion/cpu/strided.hpp"

namespace hfta::fusion::cpu {
namespace {

// The calls that make a rotation, but for the sum itself.
struct Rotation {
  ValueId x = kNoValue, cos = kNoValue, sin = kNoValue;
  std::vector<std::size_t> inner;
};

// Reads a graph backwards, through values that nobody else reads.
class Reading {
 public:
  Reading(const Builder& b, std::size_t sum) : b_(b), sum_(sum) {}

  std::optional<Rotation> rotation() {
    const Node& sum = b_.graph().nodes[sum_];
    if (sum.op != "aten::add.Tensor" || sum.no_gradient) return std::nullopt;
    for (const std::size_t turned : {1, 0}) {
      if (!is_one(sum, 2)) break;
      found_ = {};
      const bool reads = reads_turned(value_of(sum, turned), sum_) && reads_straight(value_of(sum, 1 - turned), sum_);
      if (reads && fits(sum)) return found_;
    }
    return std::nullopt;
  }

 private:
  [[nodiscard]] const Graph& graph() const { return b_.graph(); }
  [[nodiscard]] static ValueId value_of(const Node& node, std::size_t i) {
    const auto* id = argument_if<ValueId>(node, i);
    return id == nullptr ? kNoValue : *id;
  }
  [[nodiscard]] static bool is_number(const Node& node, std::size_t i, std::int64_t wanted) {
    const auto* number = argument_if<std::int64_t>(node, i);
    return number != nullptr && *number == wanted;
  }
  [[nodiscard]] static bool is_one(const Node& node, std::size_t i) {
    const auto* number = argument_if<double>(node, i);
    return i >= node.args.size() || is_number(node, i, 1) || (number != nullptr && *number == 1);
  }
  [[nodiscard]] std::int64_t last_size(ValueId id) const {
    const Shape& shape = value(id).shape;
    return shape.empty() ? 0 : shape.back();
  }
  [[nodiscard]] bool is_last(const Node& node, std::size_t i, ValueId id) const {
    const auto dims = static_cast<std::int64_t>(value(id).shape.size());
    return is_number(node, i, -1) || is_number(node, i, dims - 1);
  }

  [[nodiscard]] const Value& value(ValueId id) const { return graph().values[static_cast<std::size_t>(id)]; }

  // cos and sin repeat along dimensions of x, but not along its last one.
  [[nodiscard]] bool fits(const Node& sum) const {
    const auto of_rows = [&](ValueId id) {
      return last_size(id) == last_size(found_.x) && value(id).dtype == b_.dtype();
    };
    const ValueId made = first_output(sum);
    return made != kNoValue && value(made).shape == value(found_.x).shape && of_rows(found_.x) && of_rows(found_.cos) &&
           of_rows(found_.sin);
  }

  // The call of this op that makes the value, which only `reader` reads; it becomes one of the inner calls.
  const Node* maker(ValueId made, std::size_t reader, std::string_view op) {
    const auto maker = b_.only_reader(made) == reader ? b_.maker(made) : std::nullopt;
    if (!maker) return nullptr;
    const Node& node = graph().nodes[*maker];
    if (node.op != op || node.no_gradient || b_.apart(*maker)) return nullptr;
    if (std::find(found_.inner.begin(), found_.inner.end(), *maker) == found_.inner.end()) {
      found_.inner.push_back(*maker);
    }
    at_ = *maker;
    return &node;
  }

  // Half `which` of x along the last dimension; sets x, or compares it.
  bool reads_half(ValueId half_of_x, std::size_t reader, int which) {
    ValueId x = kNoValue;
    if (const Node* slice = maker(half_of_x, reader, "aten::slice.Tensor")) {
      x = value_of(*slice, 0);
      if (x == kNoValue || !is_last(*slice, 1, x) || !is_one(*slice, 4)) return false;
      const std::int64_t size = last_size(x), half = size / 2;
      const bool first = is_number(*slice, 2, 0) && is_number(*slice, 3, half);
      const auto* end = argument_if<std::int64_t>(*slice, 3);
      const bool second = is_number(*slice, 2, half) && end != nullptr && *end >= size;
      if (size < 2 || size % 2 != 0 || !(which == 0 ? first : second)) return false;
    } else if (const Node* chunk = maker(half_of_x, reader, "aten::chunk")) {
      x = value_of(*chunk, 0);
      if (x == kNoValue || !is_number(*chunk, 1, 2) || !is_last(*chunk, 2, x) || last_size(x) % 2 != 0) return false;
      if (chunk->outputs.size() != 2 || chunk->outputs[static_cast<std::size_t>(which)] != half_of_x) return false;
    } else {
      return false;
    }
    if (found_.x == kNoValue) found_.x = x;
    return found_.x == x;
  }

  // cat([-x2, x1]) * sin
  bool reads_turned(ValueId product_of, std::size_t reader) {
    const Node* product = maker(product_of, reader, "aten::mul.Tensor");
    if (product == nullptr) return false;
    const std::size_t at = at_;
    for (const std::size_t joined : {0, 1}) {
      const ValueId turned = value_of(*product, joined);
      const Node* cat = maker(turned, at, "aten::cat");
      if (cat == nullptr) continue;
      const std::size_t cat_at = at_;
      found_.sin = value_of(*product, 1 - joined);
      const auto* parts = argument_if<std::vector<ValueId>>(*cat, 0);
      if (found_.sin == kNoValue || parts == nullptr || parts->size() != 2 || !is_last(*cat, 1, turned)) return false;
      const Node* negated = maker(parts->at(0), cat_at, "aten::neg");
      if (negated == nullptr) return false;
      return reads_half(value_of(*negated, 0), at_, 1) && reads_half(parts->at(1), cat_at, 0);
    }
    return false;
  }

  // x * cos
  bool reads_straight(ValueId product_of, std::size_t reader) {
    const Node* product = maker(product_of, reader, "aten::mul.Tensor");
    if (product == nullptr) return false;
    const std::size_t own = value_of(*product, 0) == found_.x ? 0 : 1;
    found_.cos = value_of(*product, 1 - own);
    return value_of(*product, own) == found_.x && found_.cos != kNoValue;
  }

  const Builder& b_;
  std::size_t sum_;
  std::size_t at_ = 0;
  Rotation found_;
};

struct Rotary {
  Tensor x, cos, sin, y;
};

// Tensors without their last dimension, in which they have no gaps.
std::vector<Tensor> without_last(std::vector<Tensor> tensors) {
  for (Tensor& t : tensors) {
    t.sizes.pop_back();
    t.strides.pop_back();
  }
  return tensors;
}

// Calls rows(...) for stretches of rows of `to`, `from`, cos and sin, shared by the team.
template <typename T, typename Rows>
Kernel rotary_kernel(const Rotary& r, const Tensor& from, const Tensor& to, Rows rows) {
  const Loops loops = loops_over(without_last({to, from, r.cos, r.sin}));
  const std::int64_t n = to.size(-1), count = loops.sizes.back();
  return [=](const Run& run) {
    share(run.team, stretches_of(rows_of(loops), count * n), [&](std::int64_t first, std::int64_t some, int) {
      for_some_rows(loops, first, some, [&](const std::int64_t* at) {
        const auto step = [&](std::size_t t) { return loops.strides[t].back(); };
        rows(RotaryRows<T>{run.at<T>(from) + at[1], run.at<T>(r.cos) + at[2], run.at<T>(r.sin) + at[3],
                           run.at<T>(to) + at[0], count, n, step(1), step(2), step(3), step(0)});
      });
    });
  };
}

template <typename T>
void emit_rotary(Builder& b, const Rotary& r) {
  const Kernel kernel = rotary_kernel<T>(r, r.x, r.y, [](const RotaryRows<T>& rows) { rotate(rows); });
  b.emit({r.x, r.cos, r.sin, r.y}, kernel);
  b.recomputable(r.y, {r.x, r.cos, r.sin, r.y}, kernel, RecomputeCost::kPass);
  b.differentiable({r.x}, {r.y}, [&b, r] {
    const auto dy = b.gradient(r.y);
    if (!dy) return;
    const Builder::Part dx = b.contribute(r.x);
    b.emit(
        {*dy, r.cos, r.sin, dx.tensor},
        rotary_kernel<T>(r, *dy, dx.tensor, [add = dx.add](const RotaryRows<T>& rows) { rotate_backward(rows, add); }));
  });
}

}  // namespace

void fuse_rotations(Builder& b) {
  for (std::size_t i = 0; i < b.graph().nodes.size(); ++i) {
    const auto rotation = Reading(b, i).rotation();
    if (!rotation) continue;
    for (const std::size_t node : rotation->inner) b.fuse(node);
  }
}

bool fused_rotation(LoweringContext& site) {
  Builder& b = site.b;
  const auto rotation = Reading(b, site.position()).rotation();
  if (!rotation) return false;
  for (const ValueId angles : {rotation->cos, rotation->sin}) {
    if (b.wants_gradient(b.value(angles))) site.fail("the angles of its rotation are trained");
  }
  const auto row = [&](const Tensor& t) { return t.size(-1) > 1 && t.stride(-1) != 1 ? b.contiguous(t) : t; };
  const Tensor x = row(b.value(rotation->x));
  Rotary r{x, row(b.value(rotation->cos)).expanded(x.sizes), row(b.value(rotation->sin)).expanded(x.sizes), {}};
  r.y = b.fresh(x.sizes);
  if (x.dense()) r.y.strides = x.strides;
  typed(b.dtype(), [&]<typename T>() { emit_rotary<T>(b, r); });
  site.bind(r.y);
  return true;
}

}  // namespace hfta::fusion::cpu
