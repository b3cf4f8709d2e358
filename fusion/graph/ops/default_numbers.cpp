#include <array>
#include <string_view>
#include <vector>

#include "fusion/op_traits.hpp"

namespace hfta::fusion {
namespace {

struct Row {
  std::string_view op;
  DefaultNumber number;
};

// As the ops' schemas have them. Not here are factors of sums (`alpha` of add, `value` of addcmul), which no model
// means by leaving them out; exponents of norms, which choose other formulas; and the rate of attention's dropout,
// which models leave out in evaluation.
constexpr std::array kRows = {
    Row{"celu", {"alpha", 1}},
    Row{"cosine_embedding_loss", {"margin", 0}},
    Row{"cosine_similarity", {"eps", 1e-8}},
    Row{"cross_entropy_loss", {"label_smoothing", 0}},
    Row{"elu", {"alpha", 1}},
    Row{"elu", {"scale", 1}},
    Row{"elu", {"input_scale", 1}},
    Row{"group_norm", {"eps", 1e-5}},
    Row{"hardshrink", {"lambd", 0.5}},
    Row{"hardtanh", {"min_val", -1}},
    Row{"hardtanh", {"max_val", 1}},
    Row{"hinge_embedding_loss", {"margin", 1}},
    Row{"huber_loss", {"delta", 1}},
    Row{"layer_norm", {"eps", 1e-5}},
    Row{"leaky_relu", {"negative_slope", 0.01}},
    Row{"margin_ranking_loss", {"margin", 0}},
    Row{"pairwise_distance", {"eps", 1e-6}},
    Row{"rrelu", {"lower", 0.125}},
    Row{"rrelu", {"upper", 1.0 / 3}},
    Row{"smooth_l1_loss", {"beta", 1}},
    Row{"softplus", {"beta", 1}},
    Row{"softplus", {"threshold", 20}},
    Row{"softshrink", {"lambd", 0.5}},
    Row{"triplet_margin_loss", {"margin", 1}},
    Row{"triplet_margin_loss", {"eps", 1e-6}},
};

}  // namespace

std::vector<DefaultNumber> default_numbers(std::string_view op) {
  std::vector<DefaultNumber> numbers;
  for (const Row& row : kRows) {
    if (row.op == base_name(op)) numbers.push_back(row.number);
  }
  return numbers;
}

}  // namespace hfta::fusion
