// The words of array.device.

#include <algorithm>
#include <charconv>

#include "engine/config.hpp"

namespace hfta::engine {

std::optional<int> cpu_threads(const std::string& device) {
  constexpr int kMost = 4096;
  if (!device.starts_with("cpu:")) return std::nullopt;
  int threads = 0;
  const char* const end = device.data() + device.size();
  const auto [rest, error] = std::from_chars(device.data() + 4, end, threads);
  const bool is_number = error == std::errc() && rest == end && device[4] != '0' && device[4] != '-';
  return is_number && threads <= kMost ? std::optional(threads) : std::nullopt;
}

std::vector<int> threads_of(const std::vector<std::string>& devices, int all) {
  int left = all, sharers = 0;
  for (const std::string& device : devices) {
    left -= cpu_threads(device).value_or(0);
    sharers += device == "cpu" ? 1 : 0;
  }
  std::vector<int> threads;
  for (const std::string& device : devices) {
    threads.push_back(device == "cpu" ? std::max(1, left / sharers) : cpu_threads(device).value_or(all));
  }
  return threads;
}

}  // namespace hfta::engine
