#include "fusion/data/npy_header.hpp"

#include <fmt/format.h>

#include <charconv>
#include <map>
#include <optional>
#include <string_view>

#include "base/text.hpp"
#include "fusion/data/file_bytes.hpp"

namespace hfta::fusion {
namespace {

constexpr std::string_view kMagic = "\x93NUMPY";
constexpr std::size_t kMostBytes = std::size_t{1} << 46;  // so that products do not overflow

constexpr std::size_t kMostDimensions = 64;

// Reader of the one Python literal that a header is: {'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }
class HeaderText {
 public:
  HeaderText(std::string_view text, const std::string& place) : text_(text), place_(place) {}

  [[noreturn]] void fail(const std::string& wanted) const {
    fail_at(place_, fmt::format("found a damaged .npy header at '{}', wanted {}",
                                printable(text_.substr(0, std::min<std::size_t>(text_.size(), 24))), wanted));
  }

  bool take(char c) {
    skip_blanks();
    if (text_.empty() || text_[0] != c) return false;
    text_.remove_prefix(1);
    return true;
  }

  void expect(char c) {
    if (!take(c)) fail(fmt::format("'{}'", c));
  }

  bool take(std::string_view word) {
    skip_blanks();
    if (!text_.starts_with(word)) return false;
    text_.remove_prefix(word.size());
    return true;
  }

  std::string quoted() {
    skip_blanks();
    if (text_.empty() || (text_[0] != '\'' && text_[0] != '"')) fail("a quoted word");
    const std::size_t end = text_.find(text_[0], 1);
    if (end == std::string_view::npos) fail("a closing quote");
    std::string word(text_.substr(1, end - 1));
    text_.remove_prefix(end + 1);
    return word;
  }

  Shape shape() {
    expect('(');
    Shape shape;
    while (!take(')')) {
      skip_blanks();
      std::int64_t size = 0;
      const auto [end, error] = std::from_chars(text_.data(), text_.data() + text_.size(), size);
      if (error != std::errc() || size < 0) fail("a size");
      text_.remove_prefix(static_cast<std::size_t>(end - text_.data()));
      shape.push_back(size);
      if (shape.size() > kMostDimensions) {
        fail_at(place_,
                fmt::format("found an array of more than {} dimensions, which NumPy does not make", kMostDimensions));
      }
      if (!take(',')) {
        expect(')');
        break;
      }
    }
    return shape;
  }

  void end() {
    skip_blanks();
    if (!text_.empty()) fail("its end");
  }

  [[nodiscard]] bool at(char c) {
    skip_blanks();
    return !text_.empty() && text_[0] == c;
  }

 private:
  void skip_blanks() {
    while (!text_.empty() && (text_[0] == ' ' || text_[0] == '\n' || text_[0] == '\t')) text_.remove_prefix(1);
  }

  std::string_view text_;
  const std::string& place_;
};

void set_type(NpyHeader& header, const std::string& type, const std::string& place) {
  static const std::map<std::string, std::pair<char, std::size_t>> known = {
      {"b1", {'b', 1}}, {"i1", {'i', 1}}, {"i2", {'i', 2}}, {"i4", {'i', 4}}, {"i8", {'i', 8}}, {"u1", {'u', 1}},
      {"u2", {'u', 2}}, {"u4", {'u', 4}}, {"u8", {'u', 8}}, {"f2", {'f', 2}}, {"f4", {'f', 4}}, {"f8", {'f', 8}}};
  const bool ordered = !type.empty() && std::string_view("<>|=").find(type[0]) != std::string_view::npos;
  const auto found = known.find(ordered ? type.substr(1) : type);
  if (found == known.end()) {
    const bool object = type.find('O') != std::string::npos;
    fail_at(place, fmt::format("found an array of {} '{}', wanted numbers (booleans, integers, float16/32/64)",
                               object ? "Python objects" : "type", excerpt(type)));
  }
  header.type.kind = found->second.first;
  header.type.width = found->second.second;
  header.big_endian = type[0] == '>';
}

void parse_dictionary(NpyHeader& header, std::string_view text, const std::string& place) {
  HeaderText in(text, place);
  std::optional<std::string> type;
  std::optional<bool> fortran;
  std::optional<Shape> shape;
  in.expect('{');
  while (!in.take('}')) {
    const std::string key = in.quoted();
    in.expect(':');
    if (key == "descr" && !type) {
      if (in.at('[')) fail_at(place, "found an array of records, wanted an array of plain numbers");
      type = in.quoted();
    } else if (key == "fortran_order" && !fortran) {
      fortran = in.take("True");
      if (!*fortran && !in.take("False")) in.fail("True or False");
    } else if (key == "shape" && !shape) {
      shape = in.shape();
    } else {
      in.fail("descr, fortran_order and shape, once each");
    }
    if (!in.take(',')) {
      in.expect('}');
      break;
    }
  }
  in.end();
  if (!type || !fortran || !shape) in.fail("descr, fortran_order and shape");
  set_type(header, *type, place);
  header.fortran_order = *fortran;
  header.shape = *shape;
}

}  // namespace

NpyHeader parse_npy_header(std::span<const std::byte> bytes, const std::string& place) {
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  const auto byte = [&](std::size_t i) { return static_cast<std::size_t>(static_cast<unsigned char>(text[i])); };
  if (!text.starts_with(kMagic)) fail_at(place, "found no NumPy array (.npy begins with \\x93NUMPY)");
  const std::size_t version = text.size() > 6 ? byte(6) : 0;
  if (text.size() < 8 || version < 1 || version > 3) {
    fail_at(place, fmt::format("found .npy format version {}, wanted 1 to 3", version));
  }
  const std::size_t start = version == 1 ? 10 : 12;
  if (text.size() < start) fail_at(place, "found a file that ends within its .npy header");
  std::size_t length = byte(8) | byte(9) << 8;
  if (version > 1) length |= byte(10) << 16 | byte(11) << 24;
  if (length > text.size() - start) fail_at(place, "found a file that ends within its .npy header");

  NpyHeader header;
  header.size = start + length;
  parse_dictionary(header, text.substr(start, length), place);
  const std::size_t room = kMostBytes / header.type.width;
  header.elements = 1;
  for (const std::int64_t size : header.shape) {
    const auto items = static_cast<std::size_t>(size);
    if (items > 0 && header.elements > room / items) {
      fail_at(place, "found an array of shape " + to_text(header.shape) + ", wanted a size that fits into memory");
    }
    header.elements *= items;
  }
  return header;
}

}  // namespace hfta::fusion
