#include "fusion/graph/names.hpp"

#include <algorithm>
#include <set>

#include "base/text.hpp"

namespace hfta::fusion {

bool matches(std::string_view pattern, std::string_view text) {
  std::size_t p = 0;
  std::size_t t = 0;
  std::size_t star = std::string_view::npos;
  std::size_t resume = 0;
  while (t < text.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      resume = t;
    } else if (p < pattern.size() && pattern[p] == text[t]) {
      ++p;
      ++t;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      t = ++resume;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

bool names_parameter(const std::string& pattern, const std::string& name) {
  return matches(pattern, name) || matches(pattern + ".*", name);
}

std::vector<std::string> with_modules(const std::vector<std::string>& names) {
  std::set<std::string> all;
  for (const std::string& name : names) {
    all.insert(name);
    for (std::size_t dot = name.find('.'); dot != std::string::npos; dot = name.find('.', dot + 1)) {
      all.insert(name.substr(0, dot));
    }
  }
  return {all.begin(), all.end()};
}

std::string hint(const std::string& word, const std::vector<std::string>& candidates) {
  const std::string near = nearest(word, candidates);
  if (!near.empty()) return "; did you mean '" + near + "'?";
  if (candidates.empty()) return "; there are none";
  constexpr std::size_t kShown = 5;
  const std::vector<std::string> first(
      candidates.begin(), candidates.begin() + static_cast<std::ptrdiff_t>(std::min(kShown, candidates.size())));
  return (candidates.size() > kShown ? "; there are for example " : "; there are ") + join(first);
}

}  // namespace hfta::fusion
