// What makes two sources of data the same.

#include <fmt/format.h>

#include <utility>

#include "base/paths.hpp"
#include "base/stamp.hpp"
#include "fusion/dataset.hpp"

namespace hfta::fusion {
namespace {

// Parts with their lengths, so that no two lists of parts give one text.
class Text {
 public:
  void add(const std::string& part) { text_ += fmt::format("{}:{},", part.size(), part); }
  void add(const std::filesystem::path& part) { add(part.string()); }
  void add(std::int64_t part) { add(fmt::format("{}", part)); }
  void add(const std::optional<double>& part) { add(part ? fmt::format("{}", *part) : std::string("none")); }
  void add(const FoldSource& part) {
    const auto& [count, fold, stratified, groups] = part;
    add(std::int64_t{count});
    add(std::int64_t{fold});
    add(std::int64_t{stratified});
    add(groups);
  }
  void add(const std::vector<std::string>& parts) {
    add(std::ssize(parts));
    for (const std::string& part : parts) add(part);
  }
  [[nodiscard]] const std::string& text() const { return text_; }

 private:
  std::string text_;
};

// Adds the one named, the one beside it if there is one, or the folder and those in it.
void add_files(FileStamps& stamps, const std::filesystem::path& path, const std::string& y) {
  if (path.empty()) return;
  const auto add = [&](const std::filesystem::path& file) { stamps.emplace(file, stamp_of(file)); };
  add(path);
  if (!y.empty()) {  // the name of an array in the file, or of the targets' file
    const std::filesystem::path beside = path.parent_path() / y;
    if (std::string stamp = stamp_of(beside); !stamp.empty()) stamps.emplace(beside, std::move(stamp));
  }
  std::error_code error;
  for (std::filesystem::directory_iterator it(path, error), end; !error && it != end; it.increment(error)) {
    add(it->path());
  }
}

}  // namespace

std::string reading_of(const DataSource& source, const std::filesystem::path& folder) {
  // Names every field, as identity_of does; what only splits is left out.
  const auto& [name, train, validation_file, test_file, validation, test, x, y, target, features, window, stride, dtype,
               folds, where] = source;
  Text text;
  const auto add_all = [&](const auto&... fields) { (text.add(fields), ...); };
  const auto path = [&](const std::filesystem::path& file) { return path_from(folder, file).string(); };
  add_all(name, path(train), path(validation_file), path(test_file), x, y, target, features, folds.groups, window,
          stride, dtype);
  return text.text();
}

FileStamps stamps_of(const DataSource& source) {
  FileStamps stamps;
  for (const auto* file : {&source.train, &source.validation_file, &source.test_file}) {
    add_files(stamps, *file, source.y);
  }
  return stamps;
}

std::string identity_of(const DataSource& source) {
  // Names every field: one that is added does not compile until it stands here.
  const auto& [name, train, validation_file, test_file, validation, test, x, y, target, features, window, stride, dtype,
               folds, where] = source;
  Text text;
  const auto add_all = [&](const auto&... fields) { (text.add(fields), ...); };
  add_all(name, train, validation_file, test_file, validation, test, x, y, target, features, window, stride, dtype,
          folds, where);
  for (const auto& [file, stamp] : stamps_of(source)) add_all(file, stamp);
  return text.text();
}

}  // namespace hfta::fusion
