#include "base/faults.hpp"

#include <fmt/format.h>

#include <charconv>
#include <csignal>
#include <set>
#include <sstream>

#include "base/error.hpp"

namespace hfta {
namespace {

[[noreturn]] void refuse(const std::string& order) {
  throw Error(ErrorKind::kConfig,
              fmt::format("fault: found '{}', wanted place=kill, stop, fail, full or memory, or place@3=...", order));
}

}  // namespace

Faults::Faults(const std::string& orders) {
  static const std::set<std::string> actions = {"kill", "stop", "fail", "full", "memory"};
  std::istringstream words(orders);
  for (std::string word; std::getline(words, word, ',');) {
    const std::size_t equals = word.find('=');
    if (equals == std::string::npos || !actions.contains(word.substr(equals + 1))) refuse(word);
    Order order;
    order.action = word.substr(equals + 1);
    std::string place = word.substr(0, equals);
    if (const std::size_t at = place.find('@'); at != std::string::npos) {
      const char* end = place.data() + place.size();
      const auto [rest, error] = std::from_chars(place.data() + at + 1, end, order.at);
      if (error != std::errc() || rest != end || order.at < 1) refuse(word);
      place.resize(at);
    }
    orders_.emplace(std::move(place), std::move(order));
  }
}

void Faults::reach(std::string_view place) const {
  const auto [first, last] = orders_.equal_range(place);
  for (auto order = first; order != last; ++order) {
    if (order->second.reached->fetch_add(1) + 1 != order->second.at) continue;
    const std::string& action = order->second.action;
    if (action == "stop") {
      std::raise(SIGSTOP);
      continue;
    }
    const std::string what = fmt::format("a fault that was asked for: {}", place);
    if (action == "kill") std::raise(SIGKILL);
    if (action == "fail") throw Error(ErrorKind::kDevice, what);
    if (action == "full") throw Error(ErrorKind::kStorage, what);
    throw Error(ErrorKind::kMemory, what);
  }
}

}  // namespace hfta
