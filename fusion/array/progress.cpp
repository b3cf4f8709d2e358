#include "fusion/array/progress.hpp"

#include <fmt/format.h>

#include <bit>
#include <limits>

#include "base/error.hpp"

namespace hfta::fusion {
namespace {

std::int64_t to_number(const std::map<std::string, std::string>& counters, const std::string& key) {
  const auto it = counters.find(key);
  if (it == counters.end() || it->second.empty() || it->second.size() > 18 ||
      it->second.find_first_not_of("0123456789") != std::string::npos) {
    throw Error(ErrorKind::kStorage, fmt::format("slot state: metadata '{}': wanted a count", key));
  }
  return std::stoll(it->second);
}

// A double goes by its bits, so that any, NaN too, comes back as it was.
std::string bits_of(double value) { return fmt::format("{:016x}", std::bit_cast<std::uint64_t>(value)); }

double double_of(const std::map<std::string, std::string>& counters, const std::string& key) {
  const auto it = counters.find(key);
  const std::string bits = it == counters.end() ? "" : it->second;
  if (bits.size() != 16 || bits.find_first_not_of("0123456789abcdef") != std::string::npos) {
    throw Error(ErrorKind::kStorage, fmt::format("slot state: metadata '{}': wanted 16 hexadecimal digits", key));
  }
  return std::bit_cast<double>(static_cast<std::uint64_t>(std::stoull(bits, nullptr, 16)));
}

// The key of a counter of phase 1 + `later`.
std::string of_phase(std::size_t later, const char* key) { return fmt::format("phase{}.{}", later + 1, key); }

}  // namespace

std::map<std::string, std::string> counters_of(const SlotProgress& progress) {
  std::map<std::string, std::string> counters = {{"step", std::to_string(progress.step)},
                                                 {"epoch", std::to_string(progress.epoch)}};
  if (progress.batches > progress.step) counters["batches"] = std::to_string(progress.batches);
  if (progress.accumulated != 0) counters["accumulated"] = std::to_string(progress.accumulated);
  for (std::size_t p = 0; p < progress.later.size(); ++p)
    counters[of_phase(p, "step")] = std::to_string(progress.later[p].step);
  if (progress.epoch_step > 0) {
    counters["epoch_step"] = std::to_string(progress.epoch_step);
    counters["epoch_loss"] = bits_of(progress.epoch_loss);
    counters["epoch_weight"] = bits_of(progress.epoch_weight);
    for (std::size_t p = 0; p < progress.later.size(); ++p) {
      counters[of_phase(p, "epoch_loss")] = bits_of(progress.later[p].epoch_loss);
      counters[of_phase(p, "epoch_weight")] = bits_of(progress.later[p].epoch_weight);
    }
  }
  return counters;
}

SlotProgress progress_from(const std::map<std::string, std::string>& counters) {
  SlotProgress progress;
  progress.step = to_number(counters, "step");
  progress.epoch = static_cast<int>(to_number(counters, "epoch"));
  progress.batches = counters.contains("batches") ? to_number(counters, "batches") : progress.step;
  progress.accumulated = counters.contains("accumulated") ? to_number(counters, "accumulated") : 0;
  for (std::size_t p = 0; counters.contains(of_phase(p, "step")); ++p) {
    progress.later.push_back({to_number(counters, of_phase(p, "step"))});
  }
  if (!counters.contains("epoch_step")) return progress;
  progress.epoch_step = to_number(counters, "epoch_step");
  progress.epoch_loss = double_of(counters, "epoch_loss");
  // States of builds before there were weights: every sample counted 1.
  const bool weighted = counters.contains("epoch_weight");
  progress.epoch_weight = weighted ? double_of(counters, "epoch_weight") : std::numeric_limits<double>::quiet_NaN();
  for (std::size_t p = 0; p < progress.later.size(); ++p) {
    progress.later[p].epoch_loss = double_of(counters, of_phase(p, "epoch_loss"));
    progress.later[p].epoch_weight = double_of(counters, of_phase(p, "epoch_weight"));
  }
  return progress;
}

}  // namespace hfta::fusion
