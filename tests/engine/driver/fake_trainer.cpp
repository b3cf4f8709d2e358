#include "fake_trainer.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstring>
#include <numeric>
#include <optional>
#include <span>
#include <stdexcept>
#include <thread>

#include "base/error.hpp"
#include "base/random.hpp"
#include "fusion/data/safetensors.hpp"

namespace hfta::engine::testing {
namespace {

double number_of(const trials::ParamValue& value) {
  if (const auto* i = std::get_if<std::int64_t>(&value)) return static_cast<double>(*i);
  if (const auto* d = std::get_if<double>(&value)) return *d;
  if (const auto* s = std::get_if<std::string>(&value)) return static_cast<double>(s->size());
  return 0;
}

// Training state: it has to be carried on exactly for the next epoch to come out right.
struct Model {
  int number = 0, epoch = 0, step = 0;  // steps of the epoch that it is in
  int no_padding = 0;                   // its bytes are its state, and tests compare states
  double weight = 0;
  double best = 0;  // so far
};
static_assert(sizeof(Model) == 4 * sizeof(int) + 2 * sizeof(double));

double quality(const trials::Params& params) {
  double distance = 0;
  for (const auto& [name, value] : params) {
    const double v = number_of(value);
    distance += std::abs(std::sin(v * 3 + static_cast<double>(name.size())));
  }
  return 1 / (1 + distance);
}

void train(Model& model, const trials::Params& params) {
  ++model.epoch;
  CountedRandom random(7, Stream::kSimulation, static_cast<std::uint64_t>(model.number),
                       static_cast<std::uint64_t>(model.epoch));
  model.weight = 0.7 * model.weight + 0.3 * quality(params) + 0.05 * (random.uniform() - 0.5);
  model.best = model.epoch == 1 ? model.weight : std::max(model.best, model.weight);
}

class FakeArray final : public TrainerArray {
 public:
  FakeArray(World& world, std::string device, std::string partition, int width, int delay_us,
            const FakeTrainer& trainer)
      : world_(world),
        trainer_(trainer),
        device_(std::move(device)),
        partition_(std::move(partition)),
        slots_(static_cast<std::size_t>(width)),
        delay_us_(delay_us) {}

  void admit(int slot, int number, const trials::Params& params) override {
    begin("admit");
    ++world_.admits;
    put(slot, {{.number = number}, params});
  }

  void insert(int slot, int number, const trials::Params& params, const SlotState& state) override {
    begin("insert");
    ++world_.inserts;
    Model model;
    const fusion::SafetensorsFile file = fusion::parse_safetensors(state);
    require(file.tensors.size() == 2 && file.tensors.back().name == "weight", "insert: another kind of state");
    if (file.tensors.back().bytes.size() != sizeof model) {  // as an array says of a state that it cannot take
      throw Error(ErrorKind::kStorage, "slot state: a state of another size");
    }
    std::memcpy(&model, file.tensors.back().bytes.data(), sizeof model);
    if (model.number != number) ++world_.copies;
    model.number = number;
    put(slot, {model, params});
  }

  [[nodiscard]] SlotState extract(int slot) override {
    begin("extract");
    ++world_.extracts;
    const Model& model = held(slot).model;
    const std::vector<fusion::TensorView> tensors = {
        {"optimizer.momentum_buffer.weight", "U8", {0}, {}},
        {"weight", "U8", {sizeof model}, std::as_bytes(std::span(&model, 1))}};
    return fusion::write_safetensors(tensors, {});
  }

  void clear(int slot) override {
    begin("clear");
    (void)held(slot);
    slots_.at(static_cast<std::size_t>(slot)).reset();
  }

  void resize(int width) override {
    begin("resize");
    ++world_.resizes;
    require(width >= 1, "resize: no slots");
    if (width > world_.memory) throw Error(ErrorKind::kMemory, device_ + ": out of memory");
    for (std::size_t i = static_cast<std::size_t>(width); i < slots_.size(); ++i)
      require(!slots_[i], "resize: a trial is lost");
    slots_.resize(static_cast<std::size_t>(width));
  }

  // Slots that were further ahead when they were inserted wait for the others.
  [[nodiscard]] std::optional<std::vector<SlotReport>> run_epoch(const Pause& pause) override {
    const Busy busy(*this);
    if (world_.before_epoch) world_.before_epoch(device_);
    std::this_thread::sleep_for(std::chrono::microseconds(delay_us_));
    const std::lock_guard guard(world_.mutex);
    for (int step = 0; step < world_.steps; ++step) {
      if (step > 0 && pause()) {
        ++world_.pauses;
        return std::nullopt;
      }
      for (std::optional<Held>& held : slots_) {
        if (held && held->model.step == step) ++held->model.step;
      }
    }
    std::vector<SlotReport> reports;
    for (std::size_t i = 0; i < slots_.size(); ++i) {
      ++world_.slot_epochs;
      if (!slots_[i]) continue;
      ++world_.trial_epochs;
      require(slots_[i]->model.step == world_.steps, "run_epoch: an epoch of other steps");
      slots_[i]->model.step = 0;
      train(slots_[i]->model, slots_[i]->params);
      if (world_.width_matters) slots_[i]->model.weight += 1e-9 * static_cast<double>(slots_.size());
      reports.push_back({static_cast<int>(i), slots_[i]->model.epoch, metrics(*slots_[i])});
    }
    require(!reports.empty(), "run_epoch: an empty array");
    ++world_.runs;
    if (world_.after_epochs) world_.after_epochs(world_.runs);
    return reports;
  }

  [[nodiscard]] std::map<std::string, double> test(int slot) override {
    begin("test");
    ++world_.tests;
    if (!world_.has_test) return {};
    return {{"test_accuracy", held(slot).model.weight - 0.01}, {"test_loss", 1 - held(slot).model.weight}};
  }

  [[nodiscard]] bool can_borrow() const override {
    require(!busy_, "can_borrow: called while it trains");
    return world_.threads > 0;
  }
  void borrow(int lent) override {
    const std::lock_guard guard(world_.mutex);
    require(lent >= 0 && world_.threads > 0, "borrow: nothing can be lent");
    world_.borrowed.emplace_back(device_, lent);
  }

  [[nodiscard]] ArrayInfo info() const override {
    require(!busy_, "info: called while it trains");
    const auto chosen = world_.choices.find(device_);
    const std::string choices = chosen == world_.choices.end() ? R"({"linear": "loop"})" : chosen->second;
    return {static_cast<int>(slots_.size()), 0, 1, device_, choices};
  }

 private:
  // An array is used by one thread at a time.
  struct Busy {
    explicit Busy(FakeArray& array) : busy(array.busy_) {
      require(!busy.exchange(true), "run_epoch: it trains already");
    }
    ~Busy() { busy = false; }
    Busy(const Busy&) = delete;
    Busy& operator=(const Busy&) = delete;
    std::atomic<bool>& busy;
  };
  void begin(const std::string& call) {
    require(!busy_, call + ": called while it trains");
    if (world_.before_call) world_.before_call(device_, call);
  }

  struct Held {
    Model model;
    trials::Params params;
  };

  static void require(bool holds, const std::string& what) {
    if (!holds) throw std::logic_error("fake array: " + what);
  }

  void put(int slot, Held held) {
    if (world_.too_large.contains(held.model.number)) throw Error(ErrorKind::kMemory, device_ + ": out of memory");
    std::optional<Held>& place = slots_.at(static_cast<std::size_t>(slot));
    require(!place, "the slot is taken");
    require(trainer_.partition(held.params) == partition_, "a trial of another partition");
    place = std::move(held);
  }

  Held& held(int slot) {
    std::optional<Held>& place = slots_.at(static_cast<std::size_t>(slot));
    require(place.has_value(), "the slot is empty");
    return *place;
  }

  [[nodiscard]] std::map<std::string, double> metrics(const Held& held) const {
    const double shown = world_.shows_best ? held.model.best : held.model.weight;
    std::map<std::string, double> all = {{"train_loss", 1 - shown}, {"val_loss", 1.1 - shown}, {"val_accuracy", shown}};
    if (world_.counts_parameters) all[kParameterCount] = std::round(1000 * quality(held.params));
    const bool chosen = world_.diverge.contains(held.model.number) || world_.diverge.contains(-1);
    if (chosen && held.model.epoch >= world_.diverge_at) all[world_.diverging_metric] = world_.diverged;
    return all;
  }

  World& world_;
  const FakeTrainer& trainer_;
  std::string device_, partition_;
  std::vector<std::optional<Held>> slots_;
  int delay_us_;
  std::atomic<bool> busy_{false};
};

}  // namespace

FakeTrainer::FakeTrainer(World& world, std::string device, int delay_us)
    : world_(world), device_(std::move(device)), delay_us_(delay_us) {}

void FakeTrainer::check(const trials::Params& params) { world_.checked.push_back(params); }

std::string FakeTrainer::partition(const trials::Params& params) const {
  for (const auto& [name, value] : params) {
    if (name == world_.partition_by) return name + "=" + trials::to_text(value);
  }
  return "";
}

PartitionPlan FakeTrainer::plan(const trials::Params& params) {
  PartitionPlan plan;
  plan.width = world_.width;
  plan.parameters = static_cast<std::int64_t>(params.size()) * 100;
  plan.memory = MemoryNeed{.slot = 1 << 20};
  const MemoryNeed lean{.slot = 1 << 20, .activations = 2 << 20};
  plan.budget = MemoryPlan{64 << 20, true, {{"fake", *plan.memory, 2, 8, true}, {"fake, leaner", lean, 1, 8, false}}};
  plan.lowerings = {{"layers.0", "loop"}};
  return plan;
}

RankTimes FakeTrainer::rank_times(const trials::Params& /*params*/, int width, bool batches) {
  const std::int64_t batch = world_.rank_batch;
  RankTimes times;
  const double of_slot = 1e-3 / world_.rank_speed;
  for (int slots = 1; slots <= width + world_.unlike_slots; ++slots) times.of_slots.push_back(slots * of_slot);
  for (const std::int64_t samples : batches ? std::vector{batch / 4, batch} : std::vector{batch}) {
    times.of_samples[samples] = width * of_slot * static_cast<double>(samples) / static_cast<double>(batch);
  }
  world_.timed.push_back(times.of_samples.size());
  return times;
}

// Only what the first rank knows: batches as its own share, slots as its own slots.
double FakeTrainer::tried_seconds(const trials::Params& /*params*/, int width, const Division& division,
                                  int /*steps*/) {
  ++world_.tries;
  const double all = std::accumulate(division.parts.begin(), division.parts.end(), 0.0);
  const double exchanged = division.of == Division::Of::kBatches ? world_.exchange * width : 0;
  return 1e-3 / world_.rank_speed * width * division.parts.front() / all + exchanged;
}

std::string FakeTrainer::recall(const std::string& partition, const std::string& choices_json) {
  world_.recalled[partition] = choices_json;
  world_.recalled_on[{device_, partition}] = choices_json;
  return "";
}

std::unique_ptr<TrainerArray> FakeTrainer::open(const trials::Params& params, int width, double, const Pause&) {
  ++world_.opens;
  if (width > world_.memory) throw Error(ErrorKind::kMemory, device_ + ": out of memory");
  return std::make_unique<FakeArray>(world_, device_, partition(params), width, delay_us_, *this);
}

}  // namespace hfta::engine::testing
