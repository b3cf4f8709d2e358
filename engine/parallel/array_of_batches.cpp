#include <fmt/format.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/error.hpp"
#include "engine/parallel/arrays.hpp"
#include "engine/parallel/requests.hpp"

namespace hfta::engine {
namespace {

using nlohmann::json;

bool equal_bits(double a, double b) {
  return std::bit_cast<std::uint64_t>(a) == std::bit_cast<std::uint64_t>(b) || (std::isnan(a) && std::isnan(b));
}

// Every rank has the losses of all samples.
void check_losses(const std::vector<SlotReport>& reports, const json& answer, int rank) {
  const std::vector<SlotReport> others = reports_from(answer.at("reports"));
  bool equal = others.size() == reports.size();
  for (std::size_t i = 0; equal && i < reports.size(); ++i) {
    equal = equal_bits(reports[i].metrics.at("train_loss"), others[i].metrics.at("train_loss"));
  }
  if (equal) return;
  throw Error(ErrorKind::kInternal, fmt::format("rank {}: found other training losses than rank 0 has", rank));
}

class ArrayOfBatches final : public TrainerArray {
 public:
  ArrayOfBatches(Ranks& ranks, std::unique_ptr<TrainerArray> own) : ranks_(ranks), own_(std::move(own)) {}
  ~ArrayOfBatches() override { ranks_.forget({{"call", "close"}}); }
  ArrayOfBatches(const ArrayOfBatches&) = delete;
  ArrayOfBatches& operator=(const ArrayOfBatches&) = delete;

  void admit(int slot, int number, const trials::Params& params) override {
    ranks_.together(admit_request(slot, number, params), [&] { own_->admit(slot, number, params); });
  }
  void insert(int slot, int number, const trials::Params& params, const SlotState& state) override {
    ranks_.check_whole();
    own_->insert(slot, number, params, state);  // the others hear only of a state that fits
    ranks_.together(insert_request(slot, number, params, state), [] {});
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
        [&](int rank, const json& answer) {
          if (reports) check_losses(*reports, answer, rank);
        });
    return reports;
  }
  [[nodiscard]] std::map<std::string, double> test(int slot) override { return own_->test(slot); }
  [[nodiscard]] bool can_borrow() const override { return false; }
  void borrow(int /*lent*/) override {}
  [[nodiscard]] ArrayInfo info() const override {
    ArrayInfo info = own_->info();
    info.threads *= ranks_.count();
    return info;
  }

 private:
  Ranks& ranks_;
  std::unique_ptr<TrainerArray> own_;
};

}  // namespace

std::unique_ptr<TrainerArray> make_array_of_batches(Ranks& ranks, std::unique_ptr<TrainerArray> own) {
  return std::make_unique<ArrayOfBatches>(ranks, std::move(own));
}

}  // namespace hfta::engine
