// The table of losses.
#include <algorithm>

#include "base/error.hpp"
#include "fusion/loss.hpp"
#include "fusion/recipe/losses/rows.hpp"

namespace hfta::fusion {
namespace {

const std::vector<LossRow>& rows() {
  static const std::vector<LossRow> all = [] {
    std::vector<LossRow> rows;
    for (auto* family : {&class_losses, &value_losses, &binary_losses}) {
      for (LossRow& row : (*family)()) rows.push_back(std::move(row));
    }
    rows.push_back({{.kind = Loss::kModel,
                     .name = "model",
                     .sentence = "an output of the model",
                     .targets = Targets::kNone,
                     .output = std::nullopt,
                     .numbers = {},
                     .options = {"weighted"}},
                    nullptr});
    return rows;
  }();
  return all;
}

}  // namespace

std::span<const LossInfo> losses() {
  static const std::vector<LossInfo> infos = [] {
    std::vector<LossInfo> all;
    for (const LossRow& row : rows()) all.push_back(row.info);
    return all;
  }();
  return infos;
}

const LossRow& row_of(Loss loss) {
  const auto found =
      std::find_if(rows().begin(), rows().end(), [&](const LossRow& row) { return row.info.kind == loss; });
  if (found == rows().end()) throw Error(ErrorKind::kInternal, "loss: found one without a row");
  return *found;
}

const LossInfo& info_of(Loss loss) { return row_of(loss).info; }
const char* name_of(Loss loss) { return info_of(loss).name.data(); }

ValueId reduced(GraphWriter& graph, ValueId each, Reduction reduction) {
  return reduction == Reduction::kNone ? each
                                       : graph.call(reduction == Reduction::kMean ? "mean" : "sum", {each, Arg()}, {});
}

ValueId weighted_mean(GraphWriter& graph, ValueId weighted, ValueId total) {
  const ValueId none = graph.call("eq.Scalar", {total, std::int64_t{0}}, {}, DType::kBool);
  const ValueId divisor = graph.map("add.Tensor", {total, graph.call("to.dtype", {none, graph.dtype()}, {})});
  return graph.call("div.Tensor", {reduced(graph, weighted, Reduction::kSum), divisor}, {});
}

ValueId loss_call(const LossSite& site, const std::string& op, std::vector<Arg> args, Reduction reduction) {
  Shape shape = reduction == Reduction::kNone ? site.graph.shape(site.target) : Shape{};
  return site.graph.call(op, std::move(args), std::move(shape));
}

}  // namespace hfta::fusion
