// safetensors: tensors that lie in the file and are written again as they were read, or an Error{kStorage}.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>

#include "base/error.hpp"
#include "fusion/data/safetensors.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto bytes = std::as_bytes(std::span(data, size));
  try {
    const auto file = hfta::fusion::parse_safetensors(bytes);
    for (const auto& tensor : file.tensors) {
      const std::byte* const end = bytes.data() + bytes.size();
      if (tensor.bytes.data() < bytes.data() || tensor.bytes.data() + tensor.bytes.size() > end) std::abort();
    }
    const auto written = hfta::fusion::write_safetensors(file.tensors, file.metadata);
    const auto again = hfta::fusion::parse_safetensors(written);
    const bool same = std::equal(file.tensors.begin(), file.tensors.end(), again.tensors.begin(), again.tensors.end(),
                                 [](const auto& a, const auto& b) {
                                   return a.dtype == b.dtype && a.shape == b.shape &&
                                          std::equal(a.bytes.begin(), a.bytes.end(), b.bytes.begin(), b.bytes.end());
                                 });
    // Tensors without bytes lie at one place, in any order.
    const bool has_empty =
        std::any_of(file.tensors.begin(), file.tensors.end(), [](const auto& t) { return t.bytes.empty(); });
    if (again.metadata != file.metadata || (!same && !has_empty)) std::abort();
  } catch (const hfta::Error& error) {
    if (error.kind() != hfta::ErrorKind::kStorage) throw;
  }
  return 0;
}
