#include "engine/parallel/parallel_trainer.hpp"

#include <fmt/format.h>

#include <bit>
#include <chrono>
#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/error.hpp"
#include "engine/params_json.hpp"

namespace hfta::engine {
namespace {

using nlohmann::json;

// A member that has met an error answers by then.
constexpr std::chrono::milliseconds kPatience(2000);

Error error_of(const json& answer, int rank) {
  const int kind = answer.at("kind").get<int>();
  const bool known = kind >= 0 && kind <= static_cast<int>(ErrorKind::kBusy);
  return {known ? static_cast<ErrorKind>(kind) : ErrorKind::kInternal,
          fmt::format("rank {}: {}", rank, answer.at("error").get<std::string>())};
}

// Every rank has the losses of all samples.
void check_losses(const std::vector<SlotReport>& reports, const json& answer, std::size_t rank) {
  const json& losses = answer.at("losses");
  bool equal = losses.size() == reports.size();
  for (std::size_t i = 0; equal && i < reports.size(); ++i) {
    const double own = reports[i].metrics.at("train_loss");
    equal = std::bit_cast<std::uint64_t>(own) == std::bit_cast<std::uint64_t>(losses[i].get<double>()) ||
            (std::isnan(own) && std::isnan(losses[i].get<double>()));
  }
  if (equal) return;
  throw Error(ErrorKind::kInternal, fmt::format("rank {}: found other training losses than rank 0 has", rank));
}

class ParallelArray final : public TrainerArray {
 public:
  ParallelArray(Ranks& ranks, int count, std::unique_ptr<TrainerArray> own)
      : ranks_(ranks), count_(count), own_(std::move(own)) {}
  ~ParallelArray() override { ranks_.forget({{"call", "close"}}); }
  ParallelArray(const ParallelArray&) = delete;
  ParallelArray& operator=(const ParallelArray&) = delete;

  void admit(int slot, int number, const trials::Params& params) override {
    ranks_.together({{"call", "admit"}, {"slot", slot}, {"number", number}, {"params", params_json(params)}},
                    [&] { own_->admit(slot, number, params); });
  }
  void insert(int slot, int number, const trials::Params& params, const SlotState& state) override {
    const auto* const first = reinterpret_cast<const std::uint8_t*>(state.data());
    ranks_.together({{"call", "insert"},
                     {"slot", slot},
                     {"number", number},
                     {"params", params_json(params)},
                     {"state", json::binary({first, first + state.size()})}},
                    [&] { own_->insert(slot, number, params, state); });
  }
  [[nodiscard]] SlotState extract(int slot) override { return own_->extract(slot); }
  void clear(int slot) override {
    ranks_.together({{"call", "clear"}, {"slot", slot}}, [&] { own_->clear(slot); });
  }
  void resize(int width) override {
    ranks_.together({{"call", "resize"}, {"width", width}}, [&] { own_->resize(width); });
  }
  [[nodiscard]] std::optional<std::vector<SlotReport>> run_epoch(const Pause& pause) override {
    std::optional<std::vector<SlotReport>> reports;
    ranks_.together(
        {{"call", "run"}}, [&] { reports = own_->run_epoch(pause); },
        [&](std::size_t rank, const json& answer) {
          if (reports) check_losses(*reports, answer, rank);
        });
    return reports;
  }
  [[nodiscard]] std::map<std::string, double> test(int slot) override { return own_->test(slot); }
  [[nodiscard]] bool can_borrow() const override { return false; }
  void borrow(int /*lent*/) override {}
  [[nodiscard]] ArrayInfo info() const override {
    ArrayInfo info = own_->info();
    info.threads *= count_;
    return info;
  }

 private:
  Ranks& ranks_;
  int count_;
  std::unique_ptr<TrainerArray> own_;
};

}  // namespace

void Ranks::start() {
  if (start_ != nullptr) members_ = std::exchange(start_, nullptr)();
}

void Ranks::together(const json& request, const std::function<void()>& work, const LookAt& look) {
  if (!lost_.empty()) throw Error(ErrorKind::kDevice, fmt::format("{} is lost: {}", label_, lost_));
  try {
    for (const auto& member : members_) member->channel().send(request);
    work();
    hear(look);
  } catch (const std::exception& error) {
    lose(error);
  }
}

void Ranks::forget(const json& request) noexcept try {
  if (lost_.empty()) together(request, [] {});
} catch (...) {  // the next call says so
}

void Ranks::hear(const LookAt& look) {
  for (std::size_t r = 1; r <= members_.size(); ++r) {
    const std::optional<json> answer = members_[r - 1]->channel().receive();
    if (!answer) throw Error(ErrorKind::kDevice, fmt::format("rank {} has ended", r));
    if (answer->contains("error")) throw error_of(*answer, static_cast<int>(r));
    if (look) look(r, *answer);
  }
}

// Of those that have ended, or have met an error of their own; where one has ended, the others' errors are of that.
std::string Ranks::reason_of_members() {
  std::string ended, failed;
  for (std::size_t r = 0; r < members_.size(); ++r) {
    Channel& channel = members_[r]->channel();
    if (!channel.comes_within(kPatience)) continue;
    const std::optional<json> answer = channel.receive();
    if (answer && answer->contains("error") && failed.empty()) {
      failed = error_of(*answer, static_cast<int>(r) + 1).what();
    }
    if (!answer && ended.empty()) ended = fmt::format("rank {}: {}", r + 1, members_[r]->ended());
  }
  return ended.empty() ? failed : ended;
}

void Ranks::lose(const std::exception& error) {
  const auto* const ours = dynamic_cast<const Error*>(&error);
  const ErrorKind kind = ours == nullptr ? ErrorKind::kInternal : ours->kind();
  lost_ = error.what();
  if (kind == ErrorKind::kDevice) {
    if (const std::string reason = reason_of_members(); !reason.empty()) lost_ = reason;
  }
  members_.clear();
  throw Error(kind, fmt::format("{}: {}", label_, lost_));
}

DeviceFacts ParallelTrainer::device_facts() const {
  DeviceFacts facts = own_->device_facts();
  facts.speed *= count_;
  facts.threads = facts.cpus.empty() ? facts.threads * count_ : 0;  // its ranks keep to nodes of their own
  return facts;
}

std::optional<double> ParallelTrainer::step_seconds(const std::string& partition, int slots) const {
  const std::optional<double> own = own_->step_seconds(partition, slots);
  return own ? std::optional(*own / count_) : std::nullopt;
}

std::unique_ptr<TrainerArray> ParallelTrainer::open(const trials::Params& params, int width, double expected_epochs,
                                                    const Pause& pause) {
  ranks_.start();  // they load their data meanwhile
  std::unique_ptr<TrainerArray> own = own_->open(params, width, expected_epochs, pause);
  ranks_.together({{"call", "open"},
                   {"partition", partition_(params)},
                   {"params", params_json(params)},
                   {"width", width},
                   {"choices", own->info().choices_json}},
                  [] {});
  return std::make_unique<ParallelArray>(ranks_, count_, std::move(own));
}

}  // namespace hfta::engine
