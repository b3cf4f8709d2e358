// train.loss and train.metrics: the table of losses, losses of the model, formulas.
#include <catch2/catch.hpp>

#include "sample.hpp"

namespace hfta::engine {
namespace {

constexpr const char* kLoss = "loss: cross_entropy";

TaskSpec task_of(const std::vector<Change>& changes, const std::string& text = kSample) {
  const StudyConfig config = parsed(changed(changes, text));
  return config.task({{"lr", 0.1}, {"drop", 0.5}, {"hidden", std::int64_t{32}}});
}

const Change kByLoss = {"{name: val_accuracy, goal: maximize}", "{name: val_loss}"};

TaskSpec own(const std::string& loss, const std::string& metrics) {
  return task_of(
      {kByLoss, {"name: digits", "train: a.npz, x: [ids, labels]"}, {kLoss, loss + "\n  metrics: " + metrics}},
      kExported);
}

std::string refused(const std::string& loss, const std::string& text = kSample) {
  return message_of(changed({kByLoss, {kLoss, loss}}, text));
}

}  // namespace

TEST_CASE("every built-in loss has its numbers and options from the table") {
  for (const fusion::LossInfo& info : fusion::losses()) {
    if (info.kind == fusion::Loss::kModel) continue;
    INFO(info.name);
    const std::string name(info.name);
    const TaskSpec plain = task_of({kByLoss, {kLoss, "loss: " + name}});
    CHECK(plain.recipe.loss == info.kind);
    CHECK(plain.recipe.loss_options == fusion::LossOptions{});
    REQUIRE(plain.hyper.loss.size() == info.numbers.size());
    for (std::size_t i = 0; i < info.numbers.size(); ++i) {
      const fusion::LossNumber& number = info.numbers[i];
      CHECK(plain.hyper.loss[i] == number.fallback);
      const std::string key = std::string(number.name) + ": ";
      const TaskSpec searched = task_of({kByLoss,
                                         {"{min: 0.0, max: 0.7}", "{min: 0.1, max: 0.7}"},
                                         {kLoss, "loss: {name: " + name + ", " + key + "\"${drop}\"}"}});
      CHECK(searched.hyper.loss[i] == 0.5);
    }
  }
}

TEST_CASE("options of losses") {
  const auto options = [](const std::string& loss) {
    return task_of({kByLoss, {kLoss, "loss: {name: " + loss + "}"}}).recipe.loss_options;
  };
  CHECK(options("cross_entropy, ignore_index: 3").ignore_index == 3);
  CHECK(options("nll, class_weight: [1, 2.5, 0]").class_weight == std::vector<double>{1, 2.5, 0});
  CHECK(options("cross_entropy, class_dim: -1").class_dim == -1);
  CHECK(options("bce_with_logits, pos_weight: 3").pos_weight == std::vector<double>{3});
  CHECK(options("bce_with_logits, pos_weight: [1, 3]").pos_weight == std::vector<double>{1, 3});
  CHECK_FALSE(options("poisson_nll, log_input: false").log_input);
  CHECK(options("kl_div, log_target: true").log_target);
}

TEST_CASE("a key that says what holds anyway changes no study") {
  const auto normalized = [](const std::string& loss) {
    return parsed(changed({kByLoss, {kLoss, "loss: " + loss}})).normalized;
  };
  CHECK(normalized("{name: cross_entropy, ignore_index: -100, class_dim: 1}") == normalized("cross_entropy"));
  CHECK(normalized("{name: cross_entropy, ignore_index: 0}") != normalized("cross_entropy"));
  CHECK(normalized("{name: bce_with_logits, pos_weight: 1}") == normalized("bce_with_logits"));
  CHECK(normalized("{name: bce_with_logits, pos_weight: 2}") != normalized("bce_with_logits"));
}

TEST_CASE("an output of the model is the loss where no other is named") {
  const TaskSpec task = own("loss: {output: loss, weight: tokens}",
                            "{accuracy: \"hits / tokens\", perplexity: \"exp(loss)\", kl: \"mean(kl) * samples\"}");
  CHECK(task.recipe.loss == fusion::Loss::kModel);
  CHECK(task.recipe.loss_options.weighted);
  CHECK(task.model_file->import.own_loss);
  CHECK(task.model_file->import.output == std::variant<std::monostate, std::int64_t, std::string>("loss"));
  CHECK(task.recipe.terms == std::vector<std::string>{"hits", "tokens", "kl"});
  CHECK(task.model_file->import.further == std::vector<std::string>{"tokens", "hits", "tokens", "kl"});
  CHECK(task.recipe.formulas.size() == 3);
  CHECK(task.data.y.empty());
  CHECK(own("loss: {name: model, output: loss}", "{}").recipe.loss == fusion::Loss::kModel);
}

TEST_CASE("metrics come as words and maps") {
  const TaskSpec task =
      task_of({{kLoss, "loss: cross_entropy\n  metrics: [accuracy, {name: f1, average: none}, {name: top_k, k: 3}]"}});
  using fusion::MetricSpec;
  CHECK(task.recipe.metrics == std::vector<MetricSpec>{{"accuracy"}, {"f1", 5, fusion::Average::kNone}, {"top_k", 3}});
  for (const char* name : {"val_accuracy", "val_f1_0", "val_f1_7", "val_top_3", "val_loss", "train_loss"}) {
    INFO(name);
    CHECK(message_of(changed({{kLoss,
                               "loss: cross_entropy\n  metrics: [accuracy, {name: f1, average: none}, {name: "
                               "top_k, k: 3}]"},
                              {"val_accuracy", name}}))
              .empty());
  }
}

TEST_CASE("losses and metrics that cannot be are refused where they stand") {
  const auto begins = [](const std::string& found, const std::string& wanted) {
    CHECK(found.substr(0, wanted.size()) == wanted);
  };
  begins(refused("loss: {name: huber, delta: 0}"), "s.yaml:21: train.loss.delta: found 0, wanted a number above 0");
  begins(refused("loss: {name: mse, delta: 1}"), "s.yaml:21: train.loss.delta: found a key of huber");
  begins(refused("loss: {name: cross_entropy, class_weight: 2}"),
         "s.yaml:21: train.loss.class_weight: found 2, wanted");
  begins(refused("loss: {name: cross_entropy, class_weight: [1, -1]}"),
         "s.yaml:21: train.loss.class_weight.1: found -1, wanted");
  begins(refused("loss: {name: cross_entropy, class_dim: 0}"),
         "s.yaml:21: train.loss.class_dim: found 0, wanted 1 or -1");
  begins(refused("loss: {output: loss}"), "s.yaml:21: train.loss.name: found a loss of the model beside model.layers");
  begins(refused("loss: {name: model}", kExported), "s.yaml:18: train.loss.output: found nothing, wanted the name");
  begins(refused("loss: mse\n  metrics: {a: loss}"), "s.yaml:22: train.metrics: found formulas");
  begins(refused("loss: cross_entropy\n  metrics: [{name: f1, k: 3}]"),
         "s.yaml:22: train.metrics.0.k: found an option");
  begins(refused("loss: cross_entropy\n  metrics: [{name: f1, average: mean}]"),
         "s.yaml:22: train.metrics.0.average: found 'mean', wanted one of macro");
  begins(refused("loss: cross_entropy\n  metrics: [{name: top_k, k: 0}]"),
         "s.yaml:22: train.metrics.0.k: found 0, wanted");
  begins(refused("loss: kl_div\n  metrics: [mse]"),
         "s.yaml:22: train.metrics.0: found 'mse', wanted a metric that goes with kl_div: it has none");
  const std::string own_loss = "loss: {output: loss}\n  metrics: ";
  begins(refused(own_loss + "{a: \"hits /\"}", kExported),
         "s.yaml:19: train.metrics.a: found the end, wanted a number");
  begins(refused(own_loss + "{loss: hits}", kExported), "s.yaml:19: train.metrics.loss: found this name");
  begins(refused(own_loss + "{a: [1]}", kExported), "s.yaml:19: train.metrics.a: found no formula");
  begins(message_of(changed({kByLoss, {"train: a.npz", "train: a.npz, y: y"}, {kLoss, "loss: {output: loss}"}},
                            changed({{"name: digits", "train: a.npz"}}, kExported))),
         "s.yaml:15: data.y: found it beside a loss of the model");
  begins(message_of(changed(
             {{"{name: val_accuracy, goal: maximize}", "{name: val_a}"}, {kLoss, own_loss + "{a: hits}"}}, kExported)),
         "s.yaml:6: metric.goal: found nothing, wanted minimize or maximize");
}

TEST_CASE("a warning tells that losses of trials with losses of their own do not compare") {
  struct Case {
    Change metric;
    const char* loss;
    const char* key;  // "": no warning
  };
  const Change kByAccuracy = {"method: random", "method: random"};
  for (const Case& c :
       std::vector<Case>{{kByLoss, "{name: focal, gamma: \"${drop}\"}", "train.loss.gamma"},
                         {kByLoss, "{name: quantile, quantile: \"${drop}\"}", "train.loss.quantile"},
                         {kByLoss, "{name: cross_entropy, ignore_index: \"${hidden}\"}", "train.loss.ignore_index"},
                         {kByLoss, "{name: cross_entropy, label_smoothing: \"${drop}\"}", ""},
                         {kByLoss, "{name: focal, gamma: 3}", ""},
                         {kByAccuracy, "{name: focal, gamma: \"${drop}\"}", ""}}) {
    CAPTURE(c.loss);
    const std::vector<std::string> warnings =
        parsed(changed({c.metric, {kLoss, std::string("loss: ") + c.loss}})).warnings;
    REQUIRE(warnings.size() == (*c.key == '\0' ? 0 : 1));
    if (warnings.empty()) continue;
    CHECK_THAT(warnings[0], Catch::StartsWith("s.yaml:6: metric.name: val_loss of trials with different ") &&
                                Catch::Contains(c.key));
  }
  // A parameter with one value makes no difference.
  CHECK(parsed(changed({kByLoss,
                        {"{min: 0.0, max: 0.7}", "{value: 0.5}"},
                        {kLoss, "loss: {name: focal, gamma: \"${drop}\"}"}}))
            .warnings.empty());
}

}  // namespace hfta::engine
