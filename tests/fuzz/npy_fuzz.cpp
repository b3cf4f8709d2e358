// NumPy's arrays: as many numbers as the shape says, or an Error{kConfig}.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <span>
#include <vector>

#include "base/error.hpp"
#include "fusion/data/array_file.hpp"
#include "fusion/data/sources.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using hfta::fusion::Use;
  const auto source = std::make_shared<hfta::fusion::MemorySource>(std::as_bytes(std::span(data, size)));
  for (const Use use : {Use::kNumbers, Use::kLabels, Use::kIntegers}) {
    try {
      const auto array = hfta::fusion::parse_npy(source, use, "x.npy");
      std::size_t elements = 1;
      for (const std::int64_t extent : array.shape) elements *= static_cast<std::size_t>(extent);
      if (static_cast<std::size_t>(array.numbers.size()) != elements) std::abort();
      std::vector<std::byte> all(elements * array.numbers.type().width);
      array.numbers.read(0, all);
    } catch (const hfta::Error& error) {
      if (error.kind() != hfta::ErrorKind::kConfig) throw;
    }
  }
  return 0;
}
