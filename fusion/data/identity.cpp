// What makes two sources of data the same.

#include <fmt/format.h>

#include <algorithm>

#include "fusion/data/sources.hpp"
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

// Adds the files as they are now: the one named, the one beside it, or those in a folder.
void add_files(Text& text, const std::filesystem::path& path, const std::string& y) {
  if (path.empty()) return;
  text.add(stamp_of(path));
  if (!y.empty()) text.add(stamp_of(path.parent_path() / y));
  std::error_code error;
  std::vector<std::filesystem::path> inside;
  for (std::filesystem::directory_iterator it(path, error), end; !error && it != end; it.increment(error)) {
    inside.push_back(it->path());
  }
  std::sort(inside.begin(), inside.end());
  for (const auto& file : inside) {
    text.add(file);
    text.add(stamp_of(file));
  }
}

// The path from the folder on; a file that does not lie in the folder does not move with it.
std::filesystem::path relative_to(const std::filesystem::path& folder, const std::filesystem::path& file) {
  if (file.empty()) return file;
  const auto whole = [](const std::filesystem::path& path) {
    std::error_code error;
    const std::filesystem::path absolute = std::filesystem::absolute(path, error);
    return (error ? path : absolute).lexically_normal();
  };
  const std::filesystem::path inside = whole(file).lexically_proximate(whole(folder));
  return !inside.empty() && *inside.begin() != ".." ? inside : whole(file);
}

}  // namespace

std::string reading_of(const DataSource& source, const std::filesystem::path& folder) {
  // Names every field, as identity_of does; what only splits is left out.
  const auto& [name, train, validation_file, test_file, validation, test, x, y, target, features, window, stride, dtype,
               folds, where] = source;
  Text text;
  const auto add_all = [&](const auto&... fields) { (text.add(fields), ...); };
  const auto path = [&](const std::filesystem::path& file) { return relative_to(folder, file).string(); };
  add_all(name, path(train), path(validation_file), path(test_file), x, y, target, features, folds.groups, window,
          stride, dtype);
  return text.text();
}

std::string identity_of(const DataSource& source) {
  // Names every field: one that is added does not compile until it stands here.
  const auto& [name, train, validation_file, test_file, validation, test, x, y, target, features, window, stride, dtype,
               folds, where] = source;
  Text text;
  const auto add_all = [&](const auto&... fields) { (text.add(fields), ...); };
  add_all(name, train, validation_file, test_file, validation, test, x, y, target, features, window, stride, dtype,
          folds, where);
  for (const auto* file : {&train, &validation_file, &test_file}) add_files(text, *file, y);
  return text.text();
}

}  // namespace hfta::fusion
