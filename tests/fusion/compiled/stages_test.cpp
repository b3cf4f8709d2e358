// Cuts of a pipeline that fall between two calls of one part of LibTorch's.
#include "../cpu/gradient_check.hpp"
#include "fusion/compiled/torch_library.hpp"
#include "tests/fusion/array/catch_after_torch.hpp"

namespace hfta::fusion::cpu::testing {
namespace {

ValueId hypot(SmallGraph& small, ValueId x, const std::string& weight) {
  return small.call("aten::hypot", {x, small.weight(weight, {3, 4})});
}

}  // namespace

TEST_CASE("a part of LibTorch's that a cut divides passes its gradients on", "[numeric]") {
  const std::unique_ptr<const Library> library = torch_library();
  SmallGraph small;
  small.library = library.get();
  const ValueId x = hypot(small, small.weight("x", {3, 4}), "a");
  hypot(small, hypot(small, hypot(small, x, "b"), "c"), "d");
  check_stages(small, {2, {0, 0, 0, 1, 1}}, run_training(small));
  check_gradients(small);
}

TEST_CASE("what nobody reads of a part of LibTorch's has no gradient in the stages of a pipeline, either",
          "[numeric]") {
  const std::unique_ptr<const Library> library = torch_library();
  SmallGraph small;
  small.library = library.get();
  const ValueId x = hypot(small, small.weight("x", {3, 4}), "a");
  hypot(small, hypot(small, x, "first"), "second");
  hypot(small, hypot(small, x, "b"), "c");
  const Outcome whole = run_training(small);
  for (const std::size_t dead : {2, 3}) CHECK(whole.gradients[dead].empty());
  check_stages(small, {2, {0, 0, 0, 1, 1, 1}}, whole);
}

}  // namespace hfta::fusion::cpu::testing
