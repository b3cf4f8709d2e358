// Raw tokens: windows that lie within the file, or an Error{kConfig}. The first bytes say how to read the others.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/error.hpp"
#include "fusion/data/tokens.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace hfta::fusion;
  if (size < 3) return 0;
  DataSource source;
  source.window = data[0];
  source.stride = data[1];
  source.dtype = token_types()[data[2] % token_types().size()];
  const auto file = std::make_shared<MemorySource>(std::as_bytes(std::span(data, size)).subspan(3));
  try {
    const Dataset set = token_windows(file, source, {Use::kLabels, {Use::kIntegers}}, "x.bin");
    for (const Field* field : {&set.inputs[0], &set.target}) {
      std::vector<std::int64_t> all(static_cast<std::size_t>(set.size * field->stride()));
      field->gather(0, set.size, DType::kInt64, reinterpret_cast<std::byte*>(all.data()));
    }
  } catch (const hfta::Error& error) {
    if (error.kind() != hfta::ErrorKind::kConfig) throw;
  }
  return 0;
}
