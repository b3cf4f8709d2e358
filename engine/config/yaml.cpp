#include "engine/config/yaml.hpp"

#include <fmt/format.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/mark.h>
#include <yaml-cpp/parser.h>

#include <algorithm>
#include <optional>
#include <sstream>
#include <unordered_map>
#include <utility>

#include "base/error.hpp"
#include "base/text.hpp"

namespace hfta::engine::configuration {
namespace {

constexpr const char* kNoAnchors =
    "wanted plain values: anchors and aliases are not accepted (quote words that begin "
    "with & or *)";

// A collection that is not closed yet.
struct Open {
  Node node;
  std::optional<std::string> key;  // the key of the map's next value
  int key_line = 1;
  std::unordered_map<std::string, int> lines;  // the lines of the map's keys
};

class TreeBuilder final : public YAML::EventHandler {
 public:
  TreeBuilder(std::string_view text, const std::string& file) : text_(text), file_(file) {}

  void OnDocumentStart(const YAML::Mark& mark) override {
    if (root_) fail(mark, "found a second document, wanted one");
  }
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    check_properties(mark, "?", anchor);
    if (wants_key()) fail(mark, "found no word as a key, wanted a word");
    // The mark of an absent value is that of whatever comes next.
    const bool in_map = !open_.empty() && open_.back().key;
    add(scalar_node("", false, in_map ? open_.back().key_line : line_of(mark)));
  }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t /*anchor*/) override {
    fail(mark, std::string("found an alias, ") + kNoAnchors);
  }
  void OnAnchor(const YAML::Mark& mark, const std::string& name) override {
    fail(mark, fmt::format("found the anchor &{}, {}", excerpt(name), kNoAnchors));
  }
  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    check_properties(mark, tag, anchor);
    if (value.find('\0') != std::string::npos) fail(mark, "found the character \\0, wanted text");
    if (!is_closed(mark)) fail(mark, "found a text without its closing quote, wanted \" behind it");
    if (wants_key()) return begin_value(mark, value);
    const char first = character_at(mark);
    add(scalar_node(value, first == '"' || first == '\'' || first == '|' || first == '>', line_of(mark)));
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value /*style*/) override {
    begin(mark, tag, anchor, Node::Kind::kList);
  }
  void OnSequenceEnd() override { end(); }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value /*style*/) override {
    begin(mark, tag, anchor, Node::Kind::kMap);
  }
  void OnMapEnd() override { end(); }

  [[nodiscard]] Node take() { return root_ ? std::move(*root_) : scalar_node("", false, 1); }

 private:
  [[nodiscard]] bool wants_key() const {
    return !open_.empty() && open_.back().node.kind == Node::Kind::kMap && !open_.back().key;
  }
  static int line_of(const YAML::Mark& mark) { return std::max(mark.line, 0) + 1; }
  [[nodiscard]] char character_at(const YAML::Mark& mark) const {
    const auto at = static_cast<std::size_t>(mark.pos);
    return mark.pos >= 0 && at < text_.size() ? text_[at] : '\0';
  }

  // yaml-cpp takes the end of the file for the closing quote of a text in double ones.
  [[nodiscard]] bool is_closed(const YAML::Mark& mark) const {
    if (character_at(mark) != '"') return true;
    for (auto at = static_cast<std::size_t>(mark.pos) + 1; at < text_.size(); ++at) {
      if (text_[at] == '"') return true;
      if (text_[at] == '\\') ++at;
    }
    return false;
  }

  [[nodiscard]] std::string path() const {
    std::string path;
    for (const Open& open : open_) {
      const bool list = open.node.kind == Node::Kind::kList;
      if (list) path = join_path(path, std::to_string(open.node.items.size()));
      if (open.key) path = join_path(path, *open.key);
    }
    return path;
  }
  [[noreturn]] void fail(const YAML::Mark& mark, const std::string& message) const {
    Node place;
    place.line = line_of(mark);
    fail_at(file_, place, path(), message);
  }

  void check_properties(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor) const {
    if (anchor != 0) fail(mark, std::string("found an anchor, ") + kNoAnchors);
    // A quoted scalar and one tagged `!` look alike, but for their first characters.
    if ((tag != "?" && tag != "!" && !tag.empty()) || character_at(mark) == '!') {
      fail(mark, "found a tag, wanted plain values: tags are not accepted (quote words that begin with !)");
    }
  }
  void count(const YAML::Mark& mark) {
    if (++nodes_ > kMostNodes) fail(mark, fmt::format("found more than {} values, wanted fewer", kMostNodes));
  }

  void begin_value(const YAML::Mark& mark, const std::string& key) {
    count(mark);
    Open& map = open_.back();
    const auto [known, fresh] = map.lines.emplace(key, line_of(mark));
    if (!fresh) {
      const int first = known->second;
      map.key = key;  // for the path in the message
      fail(mark, fmt::format("found the key twice, first in line {}, wanted it once", first));
    }
    map.key = key;
    map.key_line = line_of(mark);
  }
  void begin(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor, Node::Kind kind) {
    check_properties(mark, tag, anchor);
    if (wants_key()) fail(mark, "found a list or a map as a key, wanted a word");
    if (static_cast<int>(open_.size()) >= kMostDepth) {
      fail(mark, fmt::format("found lists and maps nested deeper than {}, wanted at most {}", kMostDepth, kMostDepth));
    }
    count(mark);
    Open open;
    open.node.kind = kind;
    const bool in_map = !open_.empty() && open_.back().key;
    open.node.line = in_map ? open_.back().key_line : line_of(mark);
    open_.push_back(std::move(open));
  }
  void end() {
    Node node = std::move(open_.back().node);
    open_.pop_back();
    place(std::move(node));
  }
  void add(Node node) {
    ++nodes_;
    if (nodes_ > kMostNodes)
      fail_at(file_, node, path(), fmt::format("found more than {} values, wanted fewer", kMostNodes));
    place(std::move(node));
  }
  void place(Node node) {
    if (open_.empty()) {
      root_ = std::move(node);
      return;
    }
    Open& parent = open_.back();
    if (parent.node.kind == Node::Kind::kList) {
      parent.node.items.push_back(std::move(node));
      return;
    }
    parent.node.entries.push_back({std::move(parent.key).value(), parent.key_line, std::move(node)});
    parent.key.reset();
  }

  std::string_view text_;
  const std::string& file_;
  std::vector<Open> open_;
  std::optional<Node> root_;
  int nodes_ = 0;
};

std::string_view line_at(std::string_view text, int line) {
  for (int i = 0; i < line; ++i) text.remove_prefix(std::min(text.find('\n') + 1, text.size()));
  return text.substr(0, text.find('\n'));
}

// The parser's own words for what it did not expect, with the usual causes.
std::string syntax_message(std::string_view text, const YAML::ParserException& error) {
  const int line = std::max(error.mark.line, 0);
  const std::string_view at = line_at(text, line);
  const auto column = static_cast<std::size_t>(std::max(error.mark.column, 0));
  const char c = column < at.size() ? at[column] : '\0';
  if (c == '*' || c == '&') return std::string("found an anchor or alias, ") + kNoAnchors;
  std::string hint;
  if (at.find("${") != std::string_view::npos) hint = "; within [ ] and { } write \"${name}\" in quotes";
  if (at.find('\t') != std::string_view::npos) hint = "; indent by spaces, not by tabs";
  return fmt::format("found text that is not YAML in column {} ({}), wanted YAML{}", column + 1, error.msg, hint);
}

}  // namespace

Node parse_yaml(std::string_view text, const std::string& file) {
  check_text(text, file);
  if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);  // byte-order mark: marks do not count it
  std::istringstream stream{std::string(text)};
  TreeBuilder builder(text, file);
  try {
    YAML::Parser parser(stream);
    while (parser.HandleNextDocument(builder)) {
    }
  } catch (const YAML::ParserException& error) {
    throw Error(ErrorKind::kConfig,
                fmt::format("{}:{}: {}", file, std::max(error.mark.line, 0) + 1, syntax_message(text, error)));
  } catch (const YAML::Exception& error) {
    throw Error(ErrorKind::kConfig, fmt::format("{}: found text that is not YAML ({})", file, error.what()));
  }
  return builder.take();
}

}  // namespace hfta::engine::configuration
