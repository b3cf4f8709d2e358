#include <zlib.h>

#include <catch2/catch.hpp>
#include <optional>

#include "base/error.hpp"
#include "fusion/data/table_file.hpp"
#include "temporary_folder.hpp"

namespace hfta::fusion::test {
namespace {

using Rows = std::vector<std::vector<std::string>>;

Rows rows_of(const std::string& text) {
  CsvReader reader(text, "t.csv");
  CsvRecord record;
  Rows rows;
  while (reader.next(record)) rows.push_back(record.fields);
  return rows;
}

TEST_CASE("CSV is read by RFC 4180", "[csv]") {
  const std::vector<std::pair<std::string, Rows>> cases = {
      {"", {}},
      {"a,b\n1,2\n", {{"a", "b"}, {"1", "2"}}},
      {"a,b\n1,2", {{"a", "b"}, {"1", "2"}}},
      {"a,b\r\n1,2\r\n", {{"a", "b"}, {"1", "2"}}},
      {"a,b\r1,2\r", {{"a", "b"}, {"1", "2"}}},
      {"\xEF\xBB\xBF"
       "a,b\n",
       {{"a", "b"}}},
      {"\n\na,b\n\r\n\n1,2\n\n", {{"a", "b"}, {"1", "2"}}},
      {"a,,b,\n", {{"a", "", "b", ""}}},
      {"\"a,b\",\"c\"\"d\"\n", {{"a,b", "c\"d"}}},
      {"\"two\nlines\",x\n", {{"two\nlines", "x"}}},
      {"\"\",\"\"\"\"\n", {{"", "\""}}},
      {"a\"b,c\n", {{"a\"b", "c"}}},
      {" a , b \n", {{" a ", " b "}}},
  };
  for (const auto& [text, rows] : cases) {
    CAPTURE(text);
    CHECK(rows_of(text) == rows);
  }
}

TEST_CASE("a table is told by its file's name", "[csv]") {
  struct Case {
    std::string name;
    std::optional<char> separator;
    bool gzipped;
  };
  const std::vector<Case> cases = {{"a.csv", ',', false},          {"a.tsv", '\t', false},
                                   {"A.CSV", ',', false},          {"a.csv.gz", ',', true},
                                   {"a.TSV.gz", '\t', true},       {"a.b.csv", ',', false},
                                   {"a.npz", std::nullopt, false}, {"a.gz", std::nullopt, false},
                                   {"csv", std::nullopt, false},   {"a.csv.bz2", std::nullopt, false}};
  for (const Case& c : cases) {
    CAPTURE(c.name);
    const auto format = table_format(c.name);
    CHECK(format.has_value() == c.separator.has_value());
    CHECK(is_table(c.name) == c.separator.has_value());
    if (!format || !c.separator) continue;
    CHECK(format->separator == *c.separator);
    CHECK(format->gzipped == c.gzipped);
  }
}

// `text` as gzip writes it, with what deflate makes of it.
std::string gzipped(const std::string& text) {
  z_stream stream{};
  REQUIRE(deflateInit2(&stream, 9, Z_DEFLATED, 16 + MAX_WBITS, 8, Z_DEFAULT_STRATEGY) == Z_OK);
  std::string out(deflateBound(&stream, static_cast<uLong>(text.size())) + 64, '\0');
  std::string in = text;
  stream.next_in = reinterpret_cast<Bytef*>(in.data());
  stream.avail_in = static_cast<uInt>(in.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  REQUIRE(deflate(&stream, Z_FINISH) == Z_STREAM_END);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

TEST_CASE("tables come with tabs, and gzipped", "[csv]") {
  const TemporaryFolder folder;
  const std::string commas = "a,b,y\n1,2,0.5\n3,4,1.5\n", tabs = "a\tb\ty\n1\t2\t0.5\n3\t4\t1.5\n";
  const std::vector<std::pair<std::string, std::string>> files = {
      {"t.csv", commas},
      {"t.tsv", tabs},
      {"t.csv.gz", gzipped(commas)},
      {"t.tsv.gz", gzipped(tabs)},
      {"padded.csv.gz", gzipped(commas) + std::string(512, '\0')},
      {"two.csv.gz", gzipped(commas.substr(0, 9)) + gzipped(commas.substr(9))}};
  for (const auto& [name, bytes] : files) {
    CAPTURE(name);
    const NumberTable table = read_table(folder.write(name, bytes), {"y", {}}, "t");
    CHECK(table.columns == std::vector<std::string>{"a", "b"});
    CHECK(table.features == std::vector<double>{1, 2, 3, 4});
    CHECK(table.targets == std::vector<double>{0.5, 1.5});
  }
}

TEST_CASE("a gzip file that is none, is damaged or inflates beyond belief is refused", "[csv]") {
  const TemporaryFolder folder;
  const std::string whole = gzipped("a,y\n1,2\n");
  std::string flipped = whole, huge = "a,y\n";
  flipped[flipped.size() - 6] ^= 1;  // of the checksum
  for (int i = 0; i < 5'000'000; ++i) huge += "1,1\n";
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"", "t: found a gzip file that is cut short"},
      {whole.substr(0, whole.size() - 3), "t: found a gzip file that is cut short"},
      {"a,y\n1,2\n", "t: found a file that is not gzipped"},
      {whole.substr(0, 2) + "a,y\n1,2\n", "t: found a damaged gzip file"},
      {whole + std::string(100, '\0') + "x", "t: found a damaged gzip file"},
      {flipped, "t: found a damaged gzip file"},
      {gzipped(huge), "wanted at most 100 times as many"}};
  for (const auto& [bytes, message] : cases) {
    CHECK_THROWS_WITH(read_table(folder.write("t.csv.gz", bytes), {"y", {}}, "t"), Catch::Contains(message));
  }
}

TEST_CASE("records know their lines", "[csv]") {
  CsvReader reader("a\n\n\"x\ny\"\r\nb\n", "t.csv");
  CsvRecord record;
  std::vector<std::size_t> lines;
  while (reader.next(record)) lines.push_back(record.line);
  CHECK(lines == std::vector<std::size_t>{1, 3, 5});
}

TEST_CASE("text that is not UTF-8 is told from its first bytes", "[csv]") {
  using namespace std::string_literals;
  for (const std::string& text : {"\xFF\xFE"
                                  "a\0,\0"s,
                                  "\xFE\xFF\0a\0,"s, "\0\0\xFE\xFF"s}) {
    CHECK_THROWS_WITH(rows_of(text), Catch::StartsWith("t.csv: found text in UTF-16 or UTF-32, wanted UTF-8"));
  }
}

TEST_CASE("broken quotes are refused", "[csv]") {
  CHECK_THROWS_WITH(rows_of("a\n\"b,c\n"), "t.csv: line 2: found a quote that is never closed");
  CHECK_THROWS_WITH(rows_of("a\n\"b\"c\n"),
                    "t.csv: line 2: found text behind a closing quote, wanted a comma or the line's end");
}

// As pandas writes its index.
TEST_CASE("a column without a name is a feature like others", "[csv]") {
  const TemporaryFolder folder;
  const auto file = folder.write("t.csv", ",a,y\n7,1,0\n8,2,1\n");
  CHECK(read_table(file, {"y", {}}, "t").columns == std::vector<std::string>{"", "a"});
  CHECK(read_table(file, {"y", {"a"}}, "t").columns == std::vector<std::string>{"a"});
}

struct TableCase {
  std::string text, target;
  std::vector<std::string> features;
  std::string message;
  Use use = Use::kNumbers;
  Use feature_use = Use::kNumbers;
};

TEST_CASE("tables that cannot be used are refused with line and column", "[csv]") {
  const TemporaryFolder folder;
  const std::vector<TableCase> cases = {
      {"", "y", {}, "t: found an empty file, wanted a header row and rows of numbers"},
      {"a,y\n", "y", {}, "t: found a header and no rows, wanted samples"},
      {"age,weight\n1,2\n", "wieght", {}, "t: found no column 'wieght'; did you mean 'weight'?"},
      {"a,b\n1,2\n", "target", {}, "t: found no column 'target'; valid: a, b"},
      {"a;y\n1;2\n", "y", {}, "t: found no column 'y'; columns are separated by commas in a .csv, by tabs in a .tsv"},
      {"a,y\n1,2\n", "y", {"aa"}, "t: found no column 'aa'; did you mean 'a'?"},
      {"a,y\n1,2\n", "y", {"a", "a"}, "t: found the feature 'a' twice"},
      {"a,y\n1,2\n", "y", {"y"}, "t: found the target 'y' among the features"},
      {"a,a,y\n1,2,3\n", "y", {}, "t: found the column 'a' twice"},
      {"y\n1\n", "y", {}, "t: found no columns beside the target"},
      {"a,y\n1,2\n1\n", "y", {}, "t: line 3: found 1 fields, wanted 2 as in the header"},
      {"a,y\n1,2,3\n", "y", {}, "t: line 2: found 3 fields, wanted 2 as in the header"},
      {"a,y\n1,2\n\nred,2\n", "y", {}, "t: line 4: column 'a': found 'red', wanted a number"},
      {"a,y\n1,2\n,2\n", "y", {}, "t: line 3: column 'a': found '', wanted a number"},
      {"a,y\nnan,2\n", "y", {}, "t: line 2: column 'a': found 'nan', wanted a number"},
      {"a,y\n1,inf\n", "y", {}, "t: line 2: column 'y': found 'inf', wanted a number"},
      {"a,y\n1e999,2\n", "y", {}, "t: line 2: column 'a': found '1e999', wanted a number"},
      {"a,y\n0x10,2\n", "y", {}, "t: line 2: column 'a': found '0x10', wanted a number"},
      {"a,y\n1 2,2\n", "y", {}, "t: line 2: column 'a': found '1 2', wanted a number"},
      {"a,y\n+-1,2\n", "y", {}, "t: line 2: column 'a': found '+-1', wanted a number"},
      {"a,y\n\x1b[2J,2\n", "y", {}, "t: line 2: column 'a': found '\\x1b[2J', wanted a number"},
      {"a,y\n1,0.5\n",
       "y",
       {},
       "t: line 2: column 'y': found '0.5', wanted a class as a whole number from 0",
       Use::kLabels},
      {"a,y\n1,-1\n",
       "y",
       {},
       "t: line 2: column 'y': found '-1', wanted a class as a whole number from 0",
       Use::kLabels},
      {"a,y\n1,setosa\n",
       "y",
       {},
       "t: line 2: column 'y': found 'setosa', wanted a class as a whole number from 0",
       Use::kLabels},
      {"a,y\n-1,0.5\n1e9,1\n2.5,1\n",
       "y",
       {},
       "t: line 4: column 'a': found '2.5', wanted a whole number, as for an integer input of the model or "
       "folds.groups",
       Use::kNumbers,
       Use::kIntegers},
  };
  for (const TableCase& c : cases) {
    CAPTURE(c.text);
    std::string message = "(none)";
    try {
      (void)read_table(folder.write("t.csv", c.text), {c.target, c.features, c.use, c.feature_use}, "t");
    } catch (const Error& error) {
      CHECK(error.kind() == ErrorKind::kConfig);
      message = error.what();
    }
    CHECK(message == c.message);
  }
}

TEST_CASE("columns come in the order asked for, text in others is left alone", "[csv]") {
  const TemporaryFolder folder;
  const auto path = folder.write("t.csv", " a ,name,\"b\",y\n1,red,2.5e-3, 3 \n+4,\"blue, dark\",-5,6.\n");
  const NumberTable table = read_table(path, {"y", {"b", "a"}}, "t");
  CHECK(table.columns == std::vector<std::string>{"b", "a"});
  CHECK(table.features == std::vector<double>{2.5e-3, 1, -5, 4});
  CHECK(table.targets == std::vector<double>{3, 6});
}

TEST_CASE("a message echoes little of a file, and no file makes a table of a million columns", "[csv]") {
  const TemporaryFolder folder;
  const std::string longest(3'000'000, 'x'), commas(3'000'000, ',');
  std::string many = "c0";
  for (int i = 1; i < 5000; ++i) many += ",c" + std::to_string(i);
  const std::pair<std::string, const char*> cases[] = {
      {"a,y\n" + longest + ",1\n", "xxx... (3000000 bytes)', wanted a number"},
      {"a," + longest + "\n1,1\n", "found no column 'y'; valid: a, xxxx"},
      {longest + "," + longest + ",y\n1,1\n", "' twice"},
      {many + "\n", "found no column 'y'"},
      {commas + "\n", "found more than 1000000 columns"},
      {"a,y\n" + commas + "\n", "found more than 1000000 columns"}};
  for (const auto& [text, words] : cases) {
    INFO(words);
    std::string message;
    try {
      (void)read_table(folder.write("t.csv", text), {"y", {}}, "t");
    } catch (const Error& error) {
      message = error.what();
    }
    CHECK_THAT(message, Catch::Contains(words));
    CHECK(message.size() < 1000);
  }
}

}  // namespace
}  // namespace hfta::fusion::test
