#pragma once
/// For groups in tests that do something more with some calls.

#include "fusion/collectives.hpp"

namespace hfta::fusion::testing {

/// Another end's calls.
class PassedOn : public Collectives {
 public:
  /// Refers to `end`.
  explicit PassedOn(Collectives& end) : end_(end) {}

  [[nodiscard]] int rank() const override { return end_.rank(); }
  [[nodiscard]] int ranks() const override { return end_.ranks(); }
  void all_reduce(std::span<float> values) override { end_.all_reduce(values); }
  void all_reduce(std::span<double> values) override { end_.all_reduce(values); }
  void broadcast(std::span<std::byte> bytes, int root) override { end_.broadcast(bytes, root); }
  void barrier() override { end_.barrier(); }
  void send(int to, int lane, std::span<const std::byte> bytes) override { end_.send(to, lane, bytes); }
  [[nodiscard]] bool send_at_once(int to, int lane, std::span<const std::byte> bytes) override {
    return end_.send_at_once(to, lane, bytes);
  }
  void await(int from, int lane) override { end_.await(from, lane); }
  void receive(int from, int lane, std::span<std::byte> bytes) override { end_.receive(from, lane, bytes); }

 private:
  Collectives& end_;
};

}  // namespace hfta::fusion::testing
