// MemoryStudies: marks of holders.

#include <fmt/format.h>

#include <limits>

#include "storage/memory/memory_content.hpp"

namespace hfta::storage {

class MemoryStudies::Mark final : public HolderMark {
 public:
  Mark(Content& content, std::string study) : content_(content), study_(std::move(study)) {
    const std::lock_guard guard(content_.mutex);
    token_ = fmt::format("memory-{}", ++content_.last_token);
    content_.marks[study_][token_] = {};
  }
  ~Mark() override {
    const std::lock_guard guard(content_.mutex);
    content_.marks[study_].erase(token_);
  }
  Mark(const Mark&) = delete;
  Mark& operator=(const Mark&) = delete;

  [[nodiscard]] std::string token() const override { return token_; }
  [[nodiscard]] std::string holder() const override { return "holder " + token_; }
  void check_held() const override {
    const std::lock_guard guard(content_.mutex);
    if (content_.marks[study_].contains(token_)) return;
    throw Error(ErrorKind::kStorage,
                fmt::format("{}: the mark {} is gone, so that another holder may have taken the study over",
                            content_.name.string(), token_));
  }

 private:
  Content& content_;
  std::string study_, token_;
};

std::optional<HolderMarks::Sight> MemoryStudies::Marks::look(const Lease& lease) {
  const std::lock_guard guard(content_.mutex);
  std::map<std::string, MemoryMark>& marks = content_.marks[study_];
  const auto found = marks.find(lease.token);
  if (found == marks.end()) return std::nullopt;
  MemoryMark& mark = found->second;
  if (mark.fate == Fate::kBeats) ++mark.looks;
  return Sight{std::to_string(mark.looks), mark.fate == Fate::kKilled};
}

std::unique_ptr<HolderMark> MemoryStudies::Marks::leave(double /*period*/) {
  return std::make_unique<Mark>(content_, study_);
}

std::vector<std::string> MemoryStudies::Marks::names() {
  const std::lock_guard guard(content_.mutex);
  std::vector<std::string> names;
  for (const auto& [name, mark] : content_.marks[study_]) names.push_back(name);
  return names;
}

void MemoryStudies::Marks::remove(const std::string& name) {
  const std::lock_guard guard(content_.mutex);
  content_.marks[study_].erase(name);
}

void MemoryStudies::befall(const std::string& study, Fate fate) {
  const std::lock_guard guard(content_->mutex);
  for (auto& [token, mark] : content_->marks[study]) mark.fate = fate;
}

std::unique_ptr<HolderMarks> MemoryStore::marks(const std::string& study) {
  return std::make_unique<MemoryStudies::Marks>(content_, study);
}

std::optional<LifeSign> MemoryStore::life_sign(const std::string& study, const Lease& lease, const Clock& /*clock*/) {
  using Fate = MemoryStudies::Fate;
  const std::lock_guard guard(content_.mutex);
  const std::map<std::string, MemoryMark>& marks = content_.marks[study];
  const auto found = marks.find(lease.token);
  if (found == marks.end()) return std::nullopt;
  const Fate fate = found->second.fate;
  return LifeSign{fate != Fate::kKilled, fate == Fate::kBeats ? 0 : std::numeric_limits<double>::infinity()};
}

}  // namespace hfta::storage
