// Recorded curves for a simulation: a CSV file is curves, which answer for any
// trial and epoch, or an Error{kConfig}.

#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "base/error.hpp"
#include "engine/simulate/curves.hpp"

namespace {

// A file without a name on any disk.
class MemoryFile {
 public:
  MemoryFile(const std::uint8_t* data, std::size_t size) : number_(::memfd_create("curves", MFD_CLOEXEC)) {
    if (number_ < 0 || ::write(number_, data, size) != static_cast<ssize_t>(size)) std::abort();
  }
  ~MemoryFile() { ::close(number_); }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;
  [[nodiscard]] std::string path() const { return "/proc/self/fd/" + std::to_string(number_); }

 private:
  int number_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  hfta::engine::StudyConfig config;
  config.objectives.front().metric = "val_loss";
  hfta::trials::Distribution word, rate;
  word.kind = hfta::trials::DistributionKind::kCategorical;
  word.values = {std::string("sgd"), std::int64_t{1}, true};
  rate.kind = hfta::trials::DistributionKind::kLogUniformValues;
  rate.min = 1e-3;
  config.space = {{"word", word}, {"number", rate}};
  const hfta::trials::Params params = {{"word", std::string("sgd")}, {"number", 0.1}};
  const MemoryFile file(data, size);
  try {
    const auto curves = hfta::engine::read_curves(file.path(), config);
    for (const int number : {0, 1, 1000}) {
      for (const int epoch : {1, 2, 1000}) static_cast<void>(curves->at(number, params, epoch));
    }
  } catch (const hfta::Error& error) {
    if (error.kind() != hfta::ErrorKind::kConfig) throw;
  }
  return 0;
}
