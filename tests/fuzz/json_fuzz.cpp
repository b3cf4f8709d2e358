// JSON in a store: distributions, spaces, choices of arrays, values. The first byte says which reader gets the rest.

#include <cstddef>
#include <cstdint>
#include <string>

#include "base/error.hpp"
#include "storage/json.hpp"
#include "storage/optuna_encoding.hpp"

namespace {

using namespace hfta;
using namespace hfta::storage;

void read(int reader, const std::string& text) {
  switch (reader % 5) {
    case 0: {
      const OptunaDistribution distribution = parse_distribution(text);
      static_cast<void>(decode(distribution, 0));
      static_cast<void>(decode(distribution, 1e300));
      break;
    }
    case 1:
      // What is read is written again as it was read.
      for (const trials::Parameter& parameter : space_from_json(text))
        static_cast<void>(to_optuna(parameter.distribution));
      break;
    case 2:
      static_cast<void>(ints_from_json(text));
      break;
    case 3:
      static_cast<void>(dump(param_to_json(param_from_json(parse(text, "value")))));
      break;
    default:
      static_cast<void>(dump(parse(text, "text")));
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  try {
    read(data[0], std::string(reinterpret_cast<const char*>(data + 1), size - 1));
  } catch (const Error& error) {
    // to_optuna calls a value that no config can give our bug.
    if (error.kind() != ErrorKind::kStorage && error.kind() != ErrorKind::kInternal) throw;
  }
  return 0;
}
