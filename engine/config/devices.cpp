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
  const auto sharers = static_cast<int>(std::count(devices.begin(), devices.end(), "cpu"));
  int left = all;
  for (const std::string& device : devices) left -= cpu_threads(device).value_or(0);
  const int part = std::max(1, left / std::max(1, sharers));
  std::vector<int> threads;
  threads.reserve(devices.size());
  for (const std::string& device : devices) {
    threads.push_back(device == "cpu" ? part : cpu_threads(device).value_or(all));
  }
  return threads;
}

}  // namespace hfta::engine
