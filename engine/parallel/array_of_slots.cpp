#include <algorithm>
#include <chrono>
#include <functional>
#include <nlohmann/json.hpp>
#include <utility>

#include "engine/parallel/arrays.hpp"
#include "engine/parallel/requests.hpp"

namespace hfta::engine {
namespace {

using nlohmann::json;

constexpr std::chrono::milliseconds kAsked(20);  // time between two looks at `pause` while only members train

class ArrayOfSlots final : public TrainerArray {
 public:
  ArrayOfSlots(Ranks& ranks, std::unique_ptr<TrainerArray> own, int width, std::vector<int> parts)
      : ranks_(ranks),
        own_(std::move(own)),
        parts_(std::move(parts)),
        places_(deal_slots(width, parts_)),
        occupied_(static_cast<std::size_t>(width), false) {}
  ~ArrayOfSlots() override { ranks_.forget(CloseRequest{}); }
  ArrayOfSlots(const ArrayOfSlots&) = delete;
  ArrayOfSlots& operator=(const ArrayOfSlots&) = delete;

  void admit(int slot, int number, const trials::Params& params) override {
    const SlotPlace at = place(slot);
    have_done(
        at.rank, [&] { own_->admit(at.slot, number, params); },
        [&] {
          return AdmitRequest{{at.slot, number, params}};
        });
    occupied_[static_cast<std::size_t>(slot)] = true;
  }
  void insert(int slot, int number, const trials::Params& params, const SlotState& state) override {
    const SlotPlace at = place(slot);
    if (at.rank == 0) {  // a state that does not fit costs nothing
      ranks_.check_whole();
      own_->insert(at.slot, number, params, state);
    } else {
      ranks_.ask(at.rank, InsertRequest{{at.slot, number, params}, state});
    }
    occupied_[static_cast<std::size_t>(slot)] = true;
  }
  [[nodiscard]] SlotState extract(int slot) override {
    const SlotPlace at = place(slot);
    if (at.rank == 0) return own_->extract(at.slot);
    SlotState state;
    ranks_.ask(at.rank, ExtractRequest{{at.slot}},
               [&](int, const json& answer) { state = answer.get<StateAnswer>().state; });
    return state;
  }
  void clear(int slot) override {
    const SlotPlace at = place(slot);
    have_done(
        at.rank, [&] { own_->clear(at.slot); }, [&] { return ClearRequest{{at.slot}}; });
    occupied_[static_cast<std::size_t>(slot)] = false;
  }
  void resize(int width) override {
    const std::vector<int> widths = widths_of_ranks(width, parts_);
    ranks_.together([&](int r) { return ResizeRequest{widths[static_cast<std::size_t>(r)]}; },
                    [&] { own_->resize(widths.front()); });
    places_ = deal_slots(width, parts_);
    occupied_.resize(static_cast<std::size_t>(width), false);
  }
  [[nodiscard]] std::optional<std::vector<SlotReport>> run_epoch(const Pause& pause) override {
    std::optional<std::vector<SlotReport>> reports;
    ranks_.guarded([&] { reports = run_all(pause); });
    return reports;
  }
  [[nodiscard]] std::map<std::string, double> test(int slot) override {
    const SlotPlace at = place(slot);
    if (at.rank == 0) return own_->test(at.slot);
    std::map<std::string, double> metrics;
    ranks_.ask(at.rank, TestRequest{{at.slot}},
               [&](int, const json& answer) { metrics = answer.get<MetricsAnswer>().metrics; });
    return metrics;
  }
  [[nodiscard]] bool can_borrow() const override { return false; }
  void borrow(int /*lent*/) override {}
  [[nodiscard]] ArrayInfo info() const override {
    ArrayInfo info = own_->info();
    info.width = static_cast<int>(places_.size());
    info.threads *= ranks_.count();
    return info;
  }

 private:
  using Reports = std::optional<std::vector<SlotReport>>;

  [[nodiscard]] SlotPlace place(int slot) const { return places_.at(static_cast<std::size_t>(slot)); }

  // Has one rank do something: rank 0 by its own work, another rank by a request.
  void have_done(int rank, const std::function<void()>& own, const std::function<json()>& request) {
    if (rank == 0) {
      ranks_.guarded(own);
    } else {
      ranks_.ask(rank, request());
    }
  }

  [[nodiscard]] bool has_trials(int rank) const {
    for (std::size_t slot = 0; slot < places_.size(); ++slot) {
      if (occupied_[slot] && places_[slot].rank == rank) return true;
    }
    return false;
  }

  // A rank's epoch that is over cannot be taken back. So the array pauses only if no rank's epoch is over; else the
  // other ranks go on until theirs is over, too.
  Reports run_all(const Pause& pause) {
    std::vector<int> training;
    for (int r = 0; r < ranks_.count(); ++r) {
      if (has_trials(r)) training.push_back(r);
    }
    std::vector<Reports> ended(static_cast<std::size_t>(ranks_.count()));
    const auto has_ended = [&](int r) { return ended[static_cast<std::size_t>(r)].has_value(); };
    bool must_end = false;
    do {
      run_some(must_end ? never : pause, training, ended);
      must_end = std::any_of(training.begin(), training.end(), has_ended);
    } while (must_end && !std::all_of(training.begin(), training.end(), has_ended));
    if (!must_end && !training.empty()) return std::nullopt;
    return joined(ended);
  }

  // Has the ranks run whose epoch is not over, until it is or a pause was asked for.
  void run_some(const Pause& pause, const std::vector<int>& training, std::vector<Reports>& ended) {
    std::vector<int> members;
    for (const int r : training) {
      if (r > 0 && !ended[static_cast<std::size_t>(r)]) members.push_back(r);
    }
    for (const int r : members) ranks_.send(r, RunRequest{});
    bool stop = false;
    if (!training.empty() && training.front() == 0 && !ended.front()) {
      ended.front() = own_->run_epoch([&] { return pause() || !ranks_.all_alive(); });
      ranks_.check_alive();
      stop = !ended.front();
    } else {
      stop = asked_meanwhile(pause, members);
    }
    for (const int r : members) {
      if (stop) ranks_.send(r, PauseRequest{});
    }
    for (const int r : members) {
      const auto answer = ranks_.receive(r).get<RunAnswer>();
      if (answer.reports) ended[static_cast<std::size_t>(r)] = answer.reports;
      if (stop) static_cast<void>(ranks_.receive(r));
    }
  }

  // Whether a pause was asked for before the first of the members had ended.
  bool asked_meanwhile(const Pause& pause, const std::vector<int>& members) {
    if (members.empty()) return false;
    while (!ranks_.answers_within(members.front(), kAsked)) {
      ranks_.check_alive();
      if (pause()) return true;
    }
    return false;
  }

  [[nodiscard]] std::vector<SlotReport> joined(std::vector<Reports>& ended) const {
    std::vector<SlotReport> all;
    for (std::size_t slot = 0; slot < places_.size(); ++slot) {
      Reports& of_rank = ended[static_cast<std::size_t>(places_[slot].rank)];
      if (!of_rank) continue;
      const auto found = std::find_if(of_rank->begin(), of_rank->end(),
                                      [&](const SlotReport& report) { return report.slot == places_[slot].slot; });
      if (found == of_rank->end()) continue;
      all.push_back(std::move(*found));
      all.back().slot = static_cast<int>(slot);
      of_rank->erase(found);
    }
    return all;
  }

  Ranks& ranks_;
  std::unique_ptr<TrainerArray> own_;
  std::vector<int> parts_;
  std::vector<SlotPlace> places_;  // by slot
  std::vector<bool> occupied_;     // by slot
};

}  // namespace

std::vector<int> widths_of_ranks(int width, const std::vector<int>& parts) {
  std::vector<int> widths = slots_of_ranks(width, parts);
  for (int& own : widths) own = std::max(own, 1);
  return widths;
}

std::unique_ptr<TrainerArray> make_array_of_slots(Ranks& ranks, std::unique_ptr<TrainerArray> own, int width,
                                                  std::vector<int> parts) {
  return std::make_unique<ArrayOfSlots>(ranks, std::move(own), width, std::move(parts));
}

}  // namespace hfta::engine
