// CIFAR's records: arrays that lie within the file, or an Error{kConfig}.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <span>
#include <vector>

#include "base/error.hpp"
#include "fusion/data/cifar.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace hfta::fusion;
  const auto file = std::make_shared<MemorySource>(std::as_bytes(std::span(data, size)));
  for (const int labels : {1, 2}) {
    for (const char* const name : {"x", "y", "fine", "coarse"}) {
      try {
        StoredArray array = cifar_array(file, labels, name, Use::kNumbers, "d.bin");
        const std::int64_t samples = array.shape.at(0);
        const Field field{name, Shape(array.shape.begin() + 1, array.shape.end()), array.numbers, array.rows};
        std::vector<float> all(static_cast<std::size_t>(samples * field.stride()));
        field.gather(0, samples, DType::kFloat32, reinterpret_cast<std::byte*>(all.data()));
      } catch (const hfta::Error& error) {
        if (error.kind() != hfta::ErrorKind::kConfig) throw;
      }
    }
  }
  return 0;
}
