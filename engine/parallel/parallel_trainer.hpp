#pragma once
/// One device made of several: each array is trained by all of them, data parallel.

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "engine/parallel/member.hpp"
#include "engine/trainer.hpp"

namespace hfta::engine {

using Members = std::vector<std::unique_ptr<Member>>;

/// The ranks behind the first, told what to do, and heard.
class Ranks {
 public:
  /// Throws if a rank's answer is wrong.
  using LookAt = std::function<void(std::size_t rank, const nlohmann::json& answer)>;

  /// `label`: the device's, for messages.
  Ranks(std::function<Members()> start, std::string label) : start_(std::move(start)), label_(std::move(label)) {}

  /// Starts the members, unless they have been.
  void start();
  /// Has all ranks do the same: sends the request, does rank 0's `work` meanwhile, and looks at each answer when it has
  /// come. If anything fails, at any rank, all members are ended, and the device is lost: this throws what tells most
  /// of why, and every later call throws Error{kDevice}.
  void together(const nlohmann::json& request, const std::function<void()>& work, const LookAt& look = {});
  /// The same for what only members do, and must not fail; after a loss nothing.
  void forget(const nlohmann::json& request) noexcept;

 private:
  void hear(const LookAt& look);
  [[noreturn]] void lose(const std::exception& error);
  [[nodiscard]] std::string reason_of_members();

  std::function<Members()> start_;  ///< Null once they were.
  Members members_;
  std::string label_;
  std::string lost_;  ///< Why; "": it is not.
};

/// The trainer of rank 0, which the driver talks to, keeps to the driver's contract; the other ranks follow: what
/// opens, fills, empties and runs an array is done by all. Weights are the same bits everywhere, so that states are
/// taken from rank 0, which alone evaluates.
class ParallelTrainer final : public Trainer {
 public:
  /// `start`: starts the members, in one group with `own`'s arrays; called when the first array is opened, so that
  /// what only plans starts none. `partition`: StudyConfig::partition.
  ParallelTrainer(std::unique_ptr<Trainer> own, std::function<Members()> start, int ranks, const std::string& label,
                  std::function<std::string(const trials::Params&)> partition)
      : ranks_(std::move(start), label), count_(ranks), own_(std::move(own)), partition_(std::move(partition)) {}

  [[nodiscard]] DeviceFacts device_facts() const override;
  void check(const trials::Params& params) override { own_->check(params); }
  [[nodiscard]] PartitionPlan plan(const trials::Params& params) override { return own_->plan(params); }
  [[nodiscard]] std::vector<MeasuredWay> measure(const trials::Params& params, const Pause& pause) override {
    return own_->measure(params, pause);
  }
  [[nodiscard]] std::vector<ModelFacts> models() const override { return own_->models(); }
  [[nodiscard]] std::string recall(const std::string& partition, const std::string& choices_json) override {
    return own_->recall(partition, choices_json);
  }
  [[nodiscard]] std::optional<double> step_seconds(const std::string& partition, int slots) const override;
  [[nodiscard]] std::unique_ptr<TrainerArray> open(const trials::Params& params, int width, double expected_epochs,
                                                   const Pause& pause) override;

 private:
  Ranks ranks_;
  int count_;
  std::unique_ptr<Trainer> own_;
  std::function<std::string(const trials::Params&)> partition_;
};

}  // namespace hfta::engine
