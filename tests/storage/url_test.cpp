/// Where --storage and `storage:` point.
#include "tests/storage/checks.hpp"
#include "tests/storage/samples.hpp"

namespace hfta::storage::testing {
namespace {

TEST_CASE("url: files and sqlite URLs become paths", "[url]") {
  const std::pair<const char*, const char*> cases[] = {
      {"digits.db", "digits.db"},
      {"../a b/digits.db", "../a b/digits.db"},
      {"/abs/digits.db", "/abs/digits.db"},
      {"odd?name#.db", "odd?name#.db"},
      {"sqlite:///digits.db", "digits.db"},
      {"sqlite:////abs/digits.db", "/abs/digits.db"},
      {"sqlite:///./x/../digits.db", "./x/../digits.db"},
      {"sqlite+pysqlite:///digits.db", "digits.db"},
  };
  for (const auto& [url, path] : cases) {
    INFO(url);
    CHECK(path_from_url(url).string() == path);
  }
}

TEST_CASE("url: anything else is refused as a config error that says what is wanted", "[url]") {
  const std::pair<std::string, const char*> cases[] = {
      {"", "digits.db"},
      {":memory:", "sqlite:///"},
      {"sqlite://", "three slashes"},
      {"sqlite:///", "digits.db"},
      {"sqlite:///:memory:", "in memory"},
      {"sqlite://digits.db", "sqlite:///digits.db"},
      {"sqlite:digits.db", "sqlite:///"},
      {"sqlite:///file:x.db?mode=ro&uri=true", "without options"},
      {"sqlite:///x.db?timeout=3", "without options"},
      {"postgresql://u@h/db", "postgresql"},
      {"mysql+pymysql://u@h/db", "not supported"},
      {std::string("a\0b", 3), "digits.db"},
  };
  for (const auto& [url, words] : cases) {
    INFO(url);
    const std::string& given = url;
    const std::string message = message_of(ErrorKind::kConfig, [&] { (void)path_from_url(given); });
    CHECK_THAT(message, Catch::Contains(words));
    CHECK(message.find('\0') == std::string::npos);
  }
}

}  // namespace
}  // namespace hfta::storage::testing
