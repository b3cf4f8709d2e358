#pragma once
/// A group behind a slow network.

#include <chrono>
#include <functional>
#include <thread>

#include "passed_on.hpp"

namespace hfta::fusion::testing {

/// The calls of another end, each of which takes as long as its bytes take at so many bytes a second.
class SlowLink final : public PassedOn {
 public:
  /// Refers to `end`. `beside`: waits_for_network().
  SlowLink(Collectives& end, double bytes_per_second, bool beside = true)
      : PassedOn(end), rate_(bytes_per_second), beside_(beside) {}

  [[nodiscard]] bool waits_for_network() const override { return beside_; }
  void all_reduce(std::span<float> values) override {
    travel(values.size_bytes(), [&] { PassedOn::all_reduce(values); });
  }
  void all_reduce(std::span<double> values) override {
    travel(values.size_bytes(), [&] { PassedOn::all_reduce(values); });
  }
  void broadcast(std::span<std::byte> bytes, int root) override {
    travel(bytes.size(), [&] { PassedOn::broadcast(bytes, root); });
  }
  void send(int to, int lane, std::span<const std::byte> bytes) override {
    travel(bytes.size(), [&] { PassedOn::send(to, lane, bytes); });
  }
  [[nodiscard]] bool send_at_once(int /*to*/, int /*lane*/, std::span<const std::byte> /*bytes*/) override {
    return false;
  }

 private:
  using Clock = std::chrono::steady_clock;

  void travel(std::size_t bytes, const std::function<void()>& call) const {
    const auto begin = Clock::now();
    call();
    std::this_thread::sleep_until(begin + std::chrono::duration_cast<Clock::duration>(
                                              std::chrono::duration<double>(static_cast<double>(bytes) / rate_)));
  }

  double rate_;
  bool beside_;
};

}  // namespace hfta::fusion::testing
