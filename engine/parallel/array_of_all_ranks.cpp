#include "engine/parallel/array_of_all_ranks.hpp"

#include <fmt/format.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "engine/parallel/requests.hpp"

namespace hfta::engine {
namespace {

using nlohmann::json;

bool equal_bits(double a, double b) {
  return std::bit_cast<std::uint64_t>(a) == std::bit_cast<std::uint64_t>(b) || (std::isnan(a) && std::isnan(b));
}

void check_losses(const std::vector<SlotReport>& reports, const RunAnswer& answer, int rank) {
  bool equal = answer.reports && answer.reports->size() == reports.size();
  for (std::size_t i = 0; equal && i < reports.size(); ++i) {
    equal = equal_bits(reports[i].metrics.at("train_loss"), answer.reports->at(i).metrics.at("train_loss"));
  }
  if (equal) return;
  throw Error(ErrorKind::kInternal, fmt::format("rank {}: found other training losses than rank 0 has", rank));
}

}  // namespace

ArrayOfAllRanks::~ArrayOfAllRanks() { ranks_.forget(CloseRequest{}); }

void ArrayOfAllRanks::admit(int slot, int number, const trials::Params& params) {
  ranks_.together(AdmitRequest{{slot, number, params}}, [&] { own_->admit(slot, number, params); });
}

void ArrayOfAllRanks::insert(int slot, int number, const trials::Params& params, const SlotState& state) {
  ranks_.check_whole();
  own_->insert(slot, number, params, state);  // only a state that fits is sent to the others
  ranks_.together(InsertRequest{{slot, number, params}, state}, [] {});
}

void ArrayOfAllRanks::clear(int slot) {
  ranks_.together(ClearRequest{{slot}}, [&] { own_->clear(slot); });
}

void ArrayOfAllRanks::resize(int width) {
  ranks_.together(ResizeRequest{width}, [&] { own_->resize(width); });
}

std::optional<std::vector<SlotReport>> ArrayOfAllRanks::run_epoch(const Pause& pause) {
  std::optional<std::vector<SlotReport>> reports;
  ranks_.together(
      RunRequest{}, [&] { reports = own_->run_epoch(pause); },
      [&](int rank, const json& answer) {
        if (reports) check_losses(*reports, answer.get<RunAnswer>(), rank);
      });
  return reports;
}

ArrayInfo ArrayOfAllRanks::info() const {
  ArrayInfo info = own_->info();
  info.threads *= ranks_.count();
  return info;
}

}  // namespace hfta::engine
