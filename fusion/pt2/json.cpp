#include "fusion/pt2/json.hpp"

#include <fmt/format.h>

#include <limits>
#include <string_view>
#include <utility>

#include "fusion/pt2/archive.hpp"

namespace hfta::fusion::pt2 {
namespace {

// Graphs in graphs nest some ten levels each; what is read recursively must not run out of stack.
constexpr int kDeepest = 200;

bool is_too_deep(std::string_view text) {
  int depth = 0;
  bool quoted = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quoted) {
      if (c == '\\') ++i;
      if (c == '"') quoted = false;
    } else if (c == '"') {
      quoted = true;
    } else if (c == '[' || c == '{') {
      if (++depth > kDeepest) return true;
    } else if (c == ']' || c == '}') {
      --depth;
    }
  }
  return false;
}

}  // namespace

Json parse_json(std::span<const std::byte> bytes, const std::string& place) {
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (is_too_deep(text)) fail(place, fmt::format("found JSON nested deeper than {} levels", kDeepest));
  try {
    return Json::parse(text);
  } catch (const Json::exception& error) {
    fail(place, fmt::format("found damaged JSON: {}", error.what()));
  }
}

void Reader::fail(const std::string& what) const { pt2::fail(place_, what); }

void Reader::wanted(const char* kind) const {
  std::string found =
      json_->is_structured() ? json_->type_name() : json_->dump(-1, ' ', true, Json::error_handler_t::replace);
  constexpr std::size_t kShown = 40;
  if (found.size() > kShown) found = found.substr(0, kShown) + "...";
  fail(fmt::format("found {}, wanted {}", found, kind));
}

Reader Reader::operator[](const std::string& key) const {
  if (!json_->is_object()) wanted(fmt::format("an object with '{}'", key).c_str());
  const auto found = json_->find(key);
  if (found == json_->end()) fail(fmt::format("found no '{}'", key));
  return {*found, fmt::format("{}: {}", place_, key)};
}

bool Reader::has(const std::string& key) const {
  if (!json_->is_object()) return false;
  const auto found = json_->find(key);
  return found != json_->end() && !found->is_null();
}

std::int64_t Reader::integer() const {
  const bool fits = json_->is_number_integer() &&
                    (!json_->is_number_unsigned() ||
                     json_->get<std::uint64_t>() <= std::uint64_t{std::numeric_limits<std::int64_t>::max()});
  if (!fits) wanted("an integer");
  return json_->get<std::int64_t>();
}

double Reader::number() const {
  if (json_->is_number()) return json_->get<double>();
  if (!json_->is_string()) wanted("a number");
  const std::string& word = json_->get_ref<const std::string&>();
  if (word == "Infinity") return std::numeric_limits<double>::infinity();
  if (word == "-Infinity") return -std::numeric_limits<double>::infinity();
  if (word == "NaN") return std::numeric_limits<double>::quiet_NaN();
  wanted("a number");
}

bool Reader::boolean() const {
  if (!json_->is_boolean()) wanted("true or false");
  return json_->get<bool>();
}

const std::string& Reader::text() const {
  if (!json_->is_string()) wanted("text");
  return json_->get_ref<const std::string&>();
}

std::vector<Reader> Reader::list() const {
  if (!json_->is_array()) wanted("a list");
  std::vector<Reader> items;
  for (std::size_t i = 0; i < json_->size(); ++i) items.emplace_back((*json_)[i], fmt::format("{}[{}]", place_, i));
  return items;
}

std::vector<std::pair<std::string, Reader>> Reader::members() const {
  if (!json_->is_object()) wanted("an object");
  std::vector<std::pair<std::string, Reader>> members;
  for (const auto& [key, value] : json_->items()) {
    members.emplace_back(key, Reader(value, fmt::format("{}: {}", place_, key)));
  }
  return members;
}

}  // namespace hfta::fusion::pt2
