#include "engine/parallel/array_of_all_ranks.hpp"
#include "engine/parallel/arrays.hpp"
#include "engine/parallel/requests.hpp"

namespace hfta::engine {
namespace {

// States and predictions of a slot take all ranks; rank 0 has them then.
class ArrayOfStages final : public ArrayOfAllRanks {
 public:
  using ArrayOfAllRanks::ArrayOfAllRanks;
  [[nodiscard]] SlotState extract(int slot) override {
    SlotState state;
    ranks().together(GatherRequest{{slot}}, [&] { state = own().extract(slot); });
    return state;
  }
  [[nodiscard]] std::map<std::string, double> test(int slot) override {
    std::map<std::string, double> metrics;
    ranks().together(TestRequest{{slot}}, [&] { metrics = own().test(slot); });
    return metrics;
  }
};

}  // namespace

std::unique_ptr<TrainerArray> make_array_of_stages(Ranks& ranks, std::unique_ptr<TrainerArray> own) {
  return std::make_unique<ArrayOfStages>(ranks, std::move(own));
}

}  // namespace hfta::engine
