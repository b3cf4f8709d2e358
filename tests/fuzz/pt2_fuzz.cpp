// Exported models: an archive is a graph or an Error{kConfig}.

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/error.hpp"
#include "fusion/exported.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    const auto model = hfta::fusion::ExportedModel::parse(std::as_bytes(std::span(data, size)), "m.pt2");
    static_cast<void>(model.graph({}).signature());
  } catch (const hfta::Error& error) {
    if (error.kind() != hfta::ErrorKind::kConfig) throw;
  }
  return 0;
}
