// The mean of what ranks have, by its weights.
#include "fusion/collectives/gradient_mean.hpp"

#include <atomic>
#include <catch2/catch.hpp>
#include <chrono>
#include <cmath>
#include <limits>

#include "as_ranks.hpp"
#include "base/random.hpp"
#include "passed_on.hpp"

namespace hfta::fusion::testing {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

struct Found {
  double loss = 0, weight = 0;
  std::vector<double> gradient;
};

// Of two slots whose ranks have those weights; a rank r has loss 1 + r and gradients (1 + r) * 10 + i. NaN where its
// weight is 0.
std::vector<std::vector<Found>> taken(const std::vector<std::vector<double>>& weights) {
  const auto ranks = weights.front().size();
  std::vector<std::vector<Found>> found(ranks);
  const auto thrown = as_ranks(static_cast<int>(ranks), [&](Collectives& group) {
    const auto r = static_cast<std::size_t>(group.rank());
    std::vector<std::vector<double>> memory(weights.size() * 2);
    std::vector<SlotMean<double>> slots(weights.size());
    for (std::size_t b = 0; b < slots.size(); ++b) {
      const bool counts = weights[b][r] != 0;
      slots[b].loss = counts ? 1.0 + static_cast<double>(r) : kNaN;
      slots[b].weight = weights[b][r];
      for (std::size_t part = 0; part < 2; ++part) {
        std::vector<double>& own = memory[2 * b + part];
        for (int i = 0; i < 3; ++i) own.push_back(counts ? 10.0 * (1.0 + static_cast<double>(r)) + i : kNaN);
        slots[b].gradients.emplace_back(own);
      }
    }
    std::vector<double> buffer;
    take_mean(group, slots, buffer);
    for (std::size_t b = 0; b < slots.size(); ++b) {
      found[r].push_back({slots[b].loss, slots[b].weight, memory[2 * b]});
      want(memory[2 * b] == memory[2 * b + 1] || std::isnan(memory[2 * b][0]), "equal gradients to have equal means");
    }
  });
  for (const std::string& error : thrown) CHECK(error.empty());
  return found;
}

}  // namespace

TEST_CASE("ranks take the mean of their gradients by weight, slot by slot") {
  const auto found = taken({{1, 3, 4}, {2, 0, 2}});
  for (const auto& rank : found) {
    CHECK(rank[0].weight == 8);
    CHECK(rank[0].loss == Approx((1 * 1 + 3 * 2 + 4 * 3) / 8.0).epsilon(1e-15));
    for (int i = 0; i < 3; ++i) {
      CHECK(rank[0].gradient[static_cast<std::size_t>(i)] ==
            Approx((10 * 1 + 20 * 3 + 30 * 4) / 8.0 + i).epsilon(1e-14));
    }
    CHECK(rank[1].weight == 4);
    CHECK(rank[1].loss == 2);
    CHECK(rank[1].gradient == std::vector<double>{20, 21, 22});
    CHECK(rank[0].gradient == found[0][0].gradient);
  }
}

TEST_CASE("the mean of nothing is no number, and everybody's") {
  for (const auto& rank : taken({{0, 0}, {1, 1}})) {
    CHECK(rank[0].weight == 0);
    CHECK(std::isnan(rank[0].loss));
    CHECK(std::isnan(rank[0].gradient[0]));
    CHECK(rank[1].gradient == std::vector<double>{15, 16, 17});
  }
}

TEST_CASE("gradients near the largest float32 have a mean, though no sum") {
  const auto thrown = as_ranks(2, [](Collectives& group) {
    std::vector<float> gradient = {3e38F};
    std::vector<SlotMean<float>> slots(1);
    slots[0].weight = 100;
    slots[0].gradients.emplace_back(gradient);
    std::vector<float> buffer;
    take_mean(group, slots, buffer);
    want(gradient[0] == 3e38F, "the mean of two equal numbers");
  });
  for (const std::string& error : thrown) CHECK(error.empty());
}

namespace {

constexpr int kPatience = 30'000;  // looks a millisecond apart

// An end whose all-reduces of floats wait until the gate is open.
class Gated final : public PassedOn {
 public:
  Gated(Collectives& end, std::atomic<bool>& open) : PassedOn(end), open_(open) {}
  using PassedOn::all_reduce;
  [[nodiscard]] bool waits_for_network() const override { return true; }
  void all_reduce(std::span<float> values) override {
    reached_ = true;
    for (int look = 0; !open_; ++look) {
      want(look < kPatience, "other work to go on meanwhile");
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    PassedOn::all_reduce(values);
  }
  void wait_until_reached() const {
    for (int look = 0; !reached_; ++look) {
      want(look < kPatience, "the first call to be made while there is other work");
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }

 private:
  std::atomic<bool>& open_;
  std::atomic<bool> reached_ = false;
};

std::vector<float> gradient_of(int rank, std::size_t piece, std::size_t n) {
  std::vector<float> all(n);
  for (std::size_t i = 0; i < n; ++i) all[i] = std::sin(static_cast<float>(i + 100 * piece) + static_cast<float>(rank));
  return all;
}

// The means of three pieces of one slot, twice over, and behind them loss and weight.
std::vector<float> means_in_pieces(Collectives& group, const std::function<void(std::size_t piece)>& added) {
  const double weights[] = {3, 0, 5};
  const double weight = weights[group.rank()];
  MeanInPieces<float> means(group);
  std::vector<float> found;
  const auto take = [&](std::size_t, std::span<const float> mean) {
    found.insert(found.end(), mean.begin(), mean.end());
  };
  for (int step = 0; step < 2; ++step) {
    means.begin({weight == 0 ? kNaN : 2.0 + group.rank(), weight});
    for (std::size_t piece = 0; piece < 3; ++piece) {
      const std::vector<float> first = gradient_of(group.rank(), piece, 40), second = gradient_of(step, piece, 300);
      const std::span<const float> both[] = {first, second};
      means.add(both);
      added(piece);
      means.take(false, take);
    }
    means.take(true, take);
    const BatchLoss whole = means.end();
    found.push_back(static_cast<float>(whole.mean));
    found.push_back(static_cast<float>(whole.weight));
  }
  return found;
}

// The same by take_mean().
std::vector<float> means_at_once(Collectives& group) {
  const double weights[] = {3, 0, 5};
  const double weight = weights[group.rank()];
  std::vector<float> found, memory;
  for (int step = 0; step < 2; ++step) {
    std::vector<std::vector<float>> gradients;
    for (std::size_t piece = 0; piece < 3; ++piece) {
      gradients.push_back(gradient_of(group.rank(), piece, 40));
      gradients.push_back(gradient_of(step, piece, 300));
    }
    std::vector<SlotMean<float>> slot(1);
    slot[0].loss = weight == 0 ? kNaN : 2.0 + group.rank();
    slot[0].weight = weight;
    slot[0].gradients.assign(gradients.begin(), gradients.end());
    take_mean(group, slot, memory);
    for (const std::vector<float>& one : gradients) found.insert(found.end(), one.begin(), one.end());
    found.push_back(static_cast<float>(slot[0].loss));
    found.push_back(static_cast<float>(slot[0].weight));
  }
  return found;
}

}  // namespace

TEST_CASE("a mean in pieces has the bits of that of all at once, beside other work or not") {
  for (const bool beside : {false, true}) {
    const auto thrown = as_ranks(3, [&](Collectives& group) {
      std::atomic<bool> open = true;
      Gated gated(group, open);
      const std::vector<float> wanted = means_at_once(group);
      want(means_in_pieces(beside ? gated : group, [](std::size_t) {}) == wanted, "equal bits");
    });
    for (const std::string& error : thrown) CHECK(error.empty());
  }
}

TEST_CASE("where calls wait for a network, the next piece is told while the first one travels") {
  const auto thrown = as_ranks(2, [&](Collectives& group) {
    std::atomic<bool> open = false;
    Gated gated(group, open);
    const std::vector<float> wanted = means_at_once(group);
    const auto added = [&](std::size_t piece) {
      if (piece == 1) gated.wait_until_reached();  // by the first one
      open = open || piece == 2;
    };
    want(means_in_pieces(gated, added) == wanted, "equal bits");
  });
  for (const std::string& error : thrown) CHECK(error.empty());
}

TEST_CASE("a rank that leaves is an error for those who wait for a mean that travels") {
  const auto thrown = as_ranks(2, [&](Collectives& group) {
    std::atomic<bool> open = true;
    Gated gated(group, open);
    if (group.rank() == 1) return;
    static_cast<void>(means_in_pieces(gated, [](std::size_t) {}));
  });
  CHECK(thrown[0] == "ranks: rank 1 of 2 has ended, wanted it to go on with the others");
}

}  // namespace hfta::fusion::testing
