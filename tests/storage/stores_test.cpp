/// The table of stores: where --storage and `storage:` point.
#include "storage/stores/stores.hpp"

#include "tests/storage/checks.hpp"
#include "tests/storage/samples.hpp"

namespace hfta::storage::testing {
namespace {

TEST_CASE("stores: files and sqlite URLs become paths", "[stores]") {
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
    CHECK(store_file(url).string() == path);
    CHECK(absolute_store(url) == std::filesystem::absolute(path));
    CHECK(resolve_store(url, "/configs") == ("/configs" / std::filesystem::path(path)).lexically_normal());
  }
}

TEST_CASE("stores: anything else is refused as a config error that says what is wanted", "[stores]") {
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
      {"mysql+pymysql://u@h/db",
       "sqlite:///digits.db or sqlite:////absolute/digits.db (mysql stores are not supported)"},
      {"memory:", "wanted a file such as digits.db"},
      {"memory:", "ends with the process"},
      {"memory://digits", "hfta-tune simulate"},
      {std::string("a\0b", 3), "digits.db"},
  };
  for (const auto& [url, words] : cases) {
    INFO(url);
    const std::string& given = url;
    void (*const calls[])(const std::string&) = {
        [](const std::string& u) { (void)store_file(u); }, [](const std::string& u) { (void)absolute_store(u); },
        [](const std::string& u) { (void)resolve_store(u, "/configs"); },
        [](const std::string& u) { (void)open_store(u, OpenMode::kCreate); },
        [](const std::string& u) { (void)open_store_if_made(u, OpenMode::kReadOnly); }};
    for (const auto call : calls) {
      const std::string message = message_of(ErrorKind::kConfig, [&] { call(given); });
      CHECK_THAT(message, Catch::StartsWith("storage: found '") && Catch::Contains(words));
      CHECK(message.find('\0') == std::string::npos);
    }
  }
}

TEST_CASE("stores: opened by URL, as they are to be used", "[stores]") {
  const TempFolder folder;
  const std::string url = "sqlite:///" + (folder / "s.db").string();
  CHECK(open_store_if_made(url, OpenMode::kReadOnly) == nullptr);
  check_refused(folder / "s.db", "no such file", [&] { (void)open_store(url, OpenMode::kReadOnly); });
  open_store(url, OpenMode::kCreate)->create(sample_study("s"));
  CHECK(open_store(url, OpenMode::kReadOnly)->find("s"));
  const std::unique_ptr<Store> readable = open_store_if_made(url, OpenMode::kReadOnly);
  REQUIRE(readable != nullptr);
  check_refused(folder / "s.db", "", [&] { readable->create(sample_study("t")); });
  open_store_if_made(url, OpenMode::kReadWrite)->create(sample_study("t"));
  CHECK(readable->studies().size() == 2);
}

}  // namespace
}  // namespace hfta::storage::testing
