#include <algorithm>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include "base/text.hpp"
#include "engine/config/key_tables.hpp"
#include "fusion/loss.hpp"

namespace hfta::engine::configuration {
namespace {

constexpr const char* kModel = "model";

template <typename Has>
std::vector<std::string> losses_that(Has has) {
  std::vector<std::string> names;
  for (const fusion::LossInfo& loss : fusion::losses()) {
    if (has(loss)) names.emplace_back(loss.name);
  }
  return names;
}

std::vector<std::string> with_option(std::string_view option) {
  return losses_that([&](const fusion::LossInfo& loss) {
    return std::find(loss.options.begin(), loss.options.end(), option) != loss.options.end();
  });
}

// The keys for the numbers of all losses; numbers of one name are one key.
std::vector<Key> number_keys() {
  std::vector<Key> keys;
  for (const fusion::LossInfo& loss : fusion::losses()) {
    for (const fusion::LossNumber& number : loss.numbers) {
      const std::string path = "train.loss." + std::string(number.name);
      const auto known = std::find_if(keys.begin(), keys.end(), [&](const Key& key) { return key.path == path; });
      if (known != keys.end()) {
        known->only.emplace_back(loss.name);
        continue;
      }
      keys.push_back({.path = path,
                      .fallback = shortest(number.fallback),
                      .least = number.least,
                      .most = number.most,
                      .above = !number.least_allowed,
                      .below = !number.most_allowed,
                      .only = {std::string(loss.name)},
                      .searched = Searched::kPerSlot,
                      .of_evaluation = !number.evaluation,
                      .sentence = std::string(number.sentence)});
    }
  }
  return keys;
}

std::string sentence_of_losses() {
  std::string text = "The loss:";
  for (const fusion::LossInfo& loss : fusion::losses()) {
    if (loss.kind != fusion::Loss::kModel)
      text += " `" + std::string(loss.name) + "`: " + std::string(loss.sentence) + ";";
  }
  return text +
         " `model` (where `output` is given and no name): an output of a `model.file` is the loss, see "
         "[models.md](models.md#a-loss-of-your-own).";
}

}  // namespace

std::vector<Key> loss_keys() {
  const Searched shape = Searched::kShape;
  std::vector<Key> keys = {
      {.path = "train.loss.name",
       .type = KeyType::kChoice,
       .choices = losses_that([](const fusion::LossInfo&) { return true; }),
       .searched = shape,
       .sentence = sentence_of_losses()},
      {.path = "train.loss.output",
       .type = KeyType::kOther,
       .fallback = "the first",
       .least = 0,
       .most = kMostCount,
       .searched = shape,
       .wanted = "a position from 0, or a name",
       .sentence = "Which output of a `model.file` the loss takes, or, without a `name`, which one is the loss: the "
                   "batch's mean, or one number per sample."}};
  const std::vector<Key> options = {
      {.path = "train.loss.weight",
       .type = KeyType::kWord,
       .fallback = "targets that count, or samples",
       .only = {kModel},
       .searched = shape,
       .sentence = "The output that the batch's mean was divided by (tokens, say): how much a batch counts in an "
                   "epoch's mean. Without it, the targets that a mean cross entropy over classes does not ignore; of "
                   "another loss, the number of samples."},
      {.path = "train.loss.ignore_index",
       .type = KeyType::kInteger,
       .fallback = "-100",
       .least = -kMostInteger,
       .most = kMostInteger,
       .only = with_option("ignore_index"),
       .searched = shape,
       .sentence = "Targets of this class do not count."},
      {.path = "train.loss.class_weight",
       .type = KeyType::kOther,
       .fallback = "all 1",
       .least = 0,
       .only = with_option("class_weight"),
       .searched = shape,
       .wanted = "a list of numbers from 0 on, one per class",
       .sentence = "Weights of the classes; the mean is divided by the weights of its targets."},
      {.path = "train.loss.class_dim",
       .type = KeyType::kInteger,
       .fallback = "1, or the last if only that fits the targets",
       .least = -1,
       .most = 1,
       .only = with_option("class_dim"),
       .searched = shape,
       .sentence = "The output's dimension of classes: 1 as in PyTorch, or -1, the last, as language models have it."},
      {.path = "train.loss.pos_weight",
       .type = KeyType::kOther,
       .fallback = "1",
       .least = 0,
       .only = with_option("pos_weight"),
       .searched = shape,
       .wanted = "a number from 0 on, or a list of them, one for each of the output's last dimension",
       .sentence = "Weight of the positive class."},
      {.path = "train.loss.log_input",
       .type = KeyType::kFlag,
       .fallback = "true",
       .only = with_option("log_input"),
       .searched = shape,
       .sentence = "Whether the output is the logarithm of the rate."},
      {.path = "train.loss.log_target",
       .type = KeyType::kFlag,
       .fallback = "false",
       .only = with_option("log_target"),
       .searched = shape,
       .sentence = "Whether the targets are logarithms."}};
  const std::ptrdiff_t before_options = std::ssize(keys);
  keys.insert(keys.end(), options.begin(), options.end());
  for (Key& key : keys) key.of_evaluation = true;
  const std::vector<Key> numbers = number_keys();
  keys.insert(keys.begin() + before_options, numbers.begin(), numbers.end());
  return keys;
}

}  // namespace hfta::engine::configuration
