#include <fmt/format.h>

#include <limits>
#include <utility>

#include "base/error.hpp"
#include "search/sampler.hpp"
#include "search/space.hpp"

namespace hfta::search {
namespace {

class Grid final : public Sampler {
 public:
  explicit Grid(trials::Space space) : space_(std::move(space)) {
    for (const trials::Parameter& parameter : space_) {
      auto values = enumerate(parameter.distribution);
      if (!values) {
        throw Error(ErrorKind::kConfig,
                    fmt::format("{}: found distribution {}, wanted a list of at most 1000000 values for a grid (value, "
                                "values, int_uniform, q_uniform or q_log_uniform)",
                                parameter.name, trials::name_of(parameter.distribution.kind)));
      }
      const auto count = static_cast<std::int64_t>(values->size());
      if (size_ > std::numeric_limits<std::int64_t>::max() / count) {
        throw Error(ErrorKind::kConfig, "the grid has more than 2^63 combinations, wanted fewer");
      }
      size_ *= count;
      axes_.push_back(std::move(*values));
    }
  }

  std::vector<trials::Params> ask(int first, int k, const History&, const trials::Params&) override {
    std::vector<trials::Params> asked;
    for (std::int64_t n = first; n < size_ && n - first < k; ++n) asked.push_back(combination(n));
    return asked;
  }

  [[nodiscard]] std::optional<std::int64_t> size() const override { return size_; }

 private:
  // The n-th combination: n's digits in the mixed radix of the axes' lengths.
  [[nodiscard]] trials::Params combination(std::int64_t n) const {
    trials::Params params(space_.size());
    for (std::size_t i = space_.size(); i-- > 0;) {
      const auto length = static_cast<std::int64_t>(axes_[i].size());
      params[i] = {space_[i].name, axes_[i][static_cast<std::size_t>(n % length)]};
      n /= length;
    }
    return params;
  }

  trials::Space space_;
  std::vector<std::vector<trials::ParamValue>> axes_;
  std::int64_t size_ = 1;
};

}  // namespace

std::unique_ptr<Sampler> make_grid(trials::Space space) { return std::make_unique<Grid>(std::move(space)); }

}  // namespace hfta::search
