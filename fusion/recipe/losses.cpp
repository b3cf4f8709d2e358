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
  constexpr double kLeastTotal = 1e-37;  // a normal float32, so that it is not taken for 0
  const ValueId divisor = graph.map("clamp_min", {total, kLeastTotal});
  return graph.call("div.Tensor", {reduced(graph, weighted, Reduction::kSum), divisor}, {});
}

ValueId loss_call(const LossSite& site, const std::string& op, std::vector<Arg> args, Reduction reduction) {
  Shape shape = reduction == Reduction::kNone ? site.graph.shape(site.target) : Shape{};
  return site.graph.call(op, std::move(args), std::move(shape));
}

}  // namespace hfta::fusion
