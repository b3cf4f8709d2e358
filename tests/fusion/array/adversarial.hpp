#pragma once
/// Two networks against each other, as a model with two losses that is trained in phases.

#include "setting.hpp"

namespace hfta::fusion::testing {

/// A generator with batch norm and dropout, x' = dropout(batch_norm(z G)), and a critic x C; the critic has two turns
/// for one of the generator, and clamped weights.
class Adversarial {
 public:
  explicit Adversarial(DType dtype) : dtype_(dtype) {
    const ValueId x = input("x", {kBatch, 4}), z = input("z", {kBatch, 3});
    const ValueId generator = weight("generator.weight", {4, 3}), critic = weight("critic.weight", {1, 4});
    const ValueId gamma = weight("generator.norm.weight", {4}), beta = weight("generator.norm.bias", {4});
    const ValueId mean = buffer("generator.norm.running_mean", Init::Kind::kZeros),
                  variance = buffer("generator.norm.running_var", Init::Kind::kOnes);
    const ValueId drawn = call("linear", {z, generator}, {kBatch, 4});
    const ValueId normed =
        call("batch_norm", {drawn, gamma, beta, mean, variance, true, 0.1, 1e-5, false}, {kBatch, 4});
    graph_.hypers.push_back({"generator.dropout.p", 0.3});
    const ValueId fake = call("dropout", {normed, HyperRef{0}, true}, {kBatch, 4});
    const auto judged = [&](ValueId of) { return call("linear", {of, critic}, {kBatch, 1}); };
    const auto softplus = [&](ValueId of) { return call("softplus", {of}, {kBatch, 1}); };
    const ValueId detached = call("detach", {fake}, {kBatch, 4});
    const ValueId real = softplus(call("neg", {judged(x)}, {kBatch, 1})), drawn_apart = softplus(judged(detached));
    const ValueId critic_loss = call("add.Tensor", {real, drawn_apart}, {kBatch, 1});
    const ValueId generator_loss = softplus(call("neg", {judged(fake)}, {kBatch, 1}));
    graph_.outputs = {critic_loss, generator_loss};
  }

  [[nodiscard]] Model model(OptimizerKind kind) const {
    Model model{"adversarial", graph_, {}, {}};
    model.recipe.dtype = dtype_;
    model.recipe.loss = Loss::kModel;
    model.recipe.optimizer = kind;
    model.recipe.batch_size = 6;
    Phase critic, generator;
    critic.loss = "critic_loss";
    critic.params = {"critic"};
    critic.optimizer = kind;
    generator.loss = "generator_loss";
    generator.params = {"generator"};
    generator.optimizer = OptimizerKind::kAdam;
    generator.groups = {{{"generator.norm"}, ""}};
    generator.every = 2;
    model.recipe.phases = {critic, generator};
    return model;
  }

 private:
  ValueId value(const std::string& name, Shape shape) {
    graph_.values.push_back({name, std::move(shape), dtype_});
    return static_cast<ValueId>(graph_.values.size()) - 1;
  }
  ValueId input(const std::string& name, Shape shape) {
    graph_.inputs.push_back(value(name, std::move(shape)));
    return graph_.inputs.back();
  }
  ValueId weight(const std::string& name, const Shape& shape) {
    Weight weight;
    weight.name = name;
    weight.shape = shape;
    weight.dtype = dtype_;
    weight.init = {Init::Kind::kUniform, 0.7};
    weight.value = value(name, shape);
    graph_.weights.push_back(std::move(weight));
    return graph_.weights.back().value;
  }
  ValueId buffer(const std::string& name, Init::Kind first) {
    const ValueId id = weight(name, {4});
    graph_.weights.back().trained = false;
    graph_.weights.back().init = {first};
    return id;
  }
  ValueId call(const std::string& op, std::vector<Arg> args, Shape shape) {
    const ValueId id = value("v" + std::to_string(graph_.values.size()), std::move(shape));
    graph_.nodes.push_back({"aten::" + op, std::move(args), {id}, op, "test"});
    return id;
  }

  DType dtype_;
  Graph graph_;
};

inline Setting adversarial_setting(DType dtype, OptimizerKind kind, const SettingSize& size) {
  Model model = Adversarial(dtype).model(kind);
  model.recipe.epochs = size.epochs;
  const auto data = [&](std::uint64_t seed) {
    return DeviceData{
        {counted_normal({size.samples, 4}, dtype, seed), counted_normal({size.samples, 3}, dtype, seed + 1)},
        {},
        size.samples};
  };
  return {std::move(model), data(size.seed), data(size.seed + 2)};
}

}  // namespace hfta::fusion::testing
