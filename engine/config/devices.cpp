// The words of array.device.

#include <algorithm>
#include <string_view>

#include "base/number_text.hpp"
#include "engine/config.hpp"

namespace hfta::engine {

std::optional<int> cpu_threads(const std::string& device) {
  constexpr int kMost = 4096;
  if (!device.starts_with("cpu:")) return std::nullopt;
  const auto threads = parse_number<int>(std::string_view(device).substr(4));
  return threads && device[4] != '0' && device[4] != '-' && *threads <= kMost ? threads : std::nullopt;
}

std::vector<std::string> parts_of(const std::string& device) {
  std::vector<std::string> parts;
  std::size_t begin = 0;
  for (std::size_t plus = device.find('+'); plus != std::string::npos; plus = device.find('+', begin)) {
    parts.push_back(device.substr(begin, plus - begin));
    begin = plus + 1;
  }
  parts.push_back(device.substr(begin));
  return parts;
}

std::vector<int> threads_of(const std::vector<std::string>& devices, int all) {
  const auto sharers = static_cast<int>(std::count(devices.begin(), devices.end(), "cpu"));
  int left = all;
  for (const std::string& device : devices) {
    for (const std::string& part : parts_of(device)) left -= cpu_threads(part).value_or(0);
  }
  const int part = std::max(1, left / std::max(1, sharers));
  std::vector<int> threads;
  threads.reserve(devices.size());
  for (const std::string& device : devices) {
    threads.push_back(device == "cpu" ? part : cpu_threads(parts_of(device).front()).value_or(all));
  }
  return threads;
}

}  // namespace hfta::engine
