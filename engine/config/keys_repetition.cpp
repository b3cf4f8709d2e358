#include "engine/config/key_tables.hpp"
#include "trials/repetition.hpp"

namespace hfta::engine::configuration {
namespace {

constexpr double kMostRepetitions = 1000;

}  // namespace

std::vector<Key> repetition_keys() {
  return {
      {.path = "repeat",
       .type = KeyType::kInteger,
       .fallback = "1",
       .least = 1,
       .most = kMostRepetitions,
       .sentence = "How many trials each configuration gets, under the seeds `train.seed` (0, unless it is given), "
                   "`train.seed` + 1, ... Every trial then has a parameter `repeat`, from 0 on."},
      {.path = "folds",
       .type = KeyType::kSection,
       .fallback = "1",
       .sentence = "Cross-validation: each configuration is trained once for each of so many parts of the training "
                   "data, which is its validation set. Every trial then has a parameter `fold`, from 0 on. A number, "
                   "or a map of the keys below. In place of `data.validation`."},
      {.path = "rank",
       .type = KeyType::kChoice,
       .fallback = "mean",
       .choices = trials::rank_names(),
       .sentence = "With `repeat` or `folds`, the value of a configuration, by which it is ranked, stopped and learned "
                   "from: the mean of its trials' values, the worse end of the mean's 95 % confidence interval "
                   "(`lower`), or the median."},
  };
}

std::vector<Key> fold_keys() {
  return {
      {.path = "folds.count",
       .type = KeyType::kInteger,
       .fallback = "1",
       .least = 1,
       .most = kMostRepetitions,
       .sentence = "Parts of the training data; 1: no cross-validation."},
      {.path = "folds.stratified",
       .type = KeyType::kFlag,
       .fallback = "false",
       .sentence = "Whether each part gets its share of every class."},
      {.path = "folds.groups",
       .type = KeyType::kWord,
       .fallback = "none",
       .sentence =
           "An array of whole numbers, or a column of a table, beside the data: samples of equal numbers are in "
           "one part (a patient's images, a user's sessions)."},
  };
}

}  // namespace hfta::engine::configuration
