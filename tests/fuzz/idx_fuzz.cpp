// IDX files: as many numbers as the shape says, or an Error{kConfig}.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <variant>

#include "base/error.hpp"
#include "fusion/data/idx.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using hfta::fusion::Use;
  for (const Use use : {Use::kNumbers, Use::kLabels, Use::kIntegers}) {
    try {
      const auto array = hfta::fusion::parse_idx(std::as_bytes(std::span(data, size)), use, "x.idx");
      std::size_t elements = 1;
      for (const std::int64_t extent : array.shape) elements *= static_cast<std::size_t>(extent);
      if (std::visit([](const auto& numbers) { return numbers.size(); }, array.numbers) != elements) std::abort();
    } catch (const hfta::Error& error) {
      if (error.kind() != hfta::ErrorKind::kConfig) throw;
    }
  }
  return 0;
}
