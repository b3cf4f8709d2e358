// The output of `nvidia-smi topo -m`.
//
// A header names the columns, GPUs first; a row begins with its GPU. Network cards have columns and rows too, and the
// last columns say which CPUs and which NUMA node are near:
//
//             GPU0    GPU1    mlx5_0  CPU Affinity    NUMA Affinity
//     GPU0     X      NV2     PIX     0-19,40-59      0
//     GPU1    NV2      X      PIX     0-19,40-59      0
//     mlx5_0  PIX     PIX      X

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>
#include <vector>

#include "base/error.hpp"
#include "base/number_text.hpp"
#include "base/text.hpp"
#include "engine/topology/numa.hpp"
#include "engine/topology/readers.hpp"

namespace hfta::engine {
namespace {

constexpr std::size_t kMostBytes = std::size_t{1} << 20;

struct Line {
  int number = 1;
  std::vector<std::string> words;
};

// The words between blanks, without underlining and colours ("\x1b[4m").
std::vector<std::string> words_of(std::string_view line) {
  std::vector<std::string> words;
  std::string word;
  const auto end_word = [&] {
    if (!word.empty()) words.push_back(std::move(word));
    word.clear();
  };
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (line[i] == '\x1b') {
      while (i < line.size() && line[i] != 'm') ++i;
    } else if (line[i] == ' ' || line[i] == '\t' || line[i] == '\r') {
      end_word();
    } else {
      word += line[i];
    }
  }
  end_word();
  return words;
}

std::vector<Line> lines_of(std::string_view text) {
  std::vector<Line> lines;
  for (int number = 1; !text.empty(); ++number) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    if (Line line{number, words_of(text.substr(0, end))}; !line.words.empty()) lines.push_back(std::move(line));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

bool is_gpu(const std::string& word) {
  constexpr std::size_t kLongest = 8;
  return word.size() > 3 && word.size() <= kLongest && word.starts_with("GPU") &&
         word.find_first_not_of("0123456789", 3) == std::string::npos;
}

Error wrong(const std::string& file, int line, const std::string& what) {
  return {ErrorKind::kConfig, fmt::format("{}:{}: {}", printable(file), line, what)};
}

// The place of the NUMA node in a row, counted in words from its end; 0: the output has none.
std::size_t node_column(const std::vector<std::string>& header) {
  const auto is_at = [&](std::size_t place, const char* first, const char* second) {
    return place + 1 < header.size() && header[place] == first && header[place + 1] == second;
  };
  for (std::size_t i = 0; i < header.size(); ++i) {
    if (!is_at(i, "NUMA", "Affinity")) continue;
    return i + 2 == header.size() ? 1 : header.back() == "ID" ? 2 : 0;  // "GPU NUMA ID" may follow
  }
  return 0;
}

int number_of(const std::string& word) {
  const int number = parse_number<int>(word).value_or(-1);
  return number >= 0 && number < kMostNumaNodes ? number : -1;
}

struct Table {
  const Line* header = nullptr;
  std::vector<const Line*> rows;  // rows of GPUs
};

Table table_of(const std::vector<Line>& lines, const std::string& file) {
  Table table;
  for (const Line& line : lines) {
    if (!is_gpu(line.words.front())) continue;
    if (table.header == nullptr) {
      table.header = &line;
    } else {
      table.rows.push_back(&line);
    }
  }
  if (table.header == nullptr) {
    throw wrong(file, 1, "found no GPU, wanted the output of nvidia-smi topo -m, or a file whose name ends in .yaml");
  }
  return table;
}

Link link_in(const Line& row, std::size_t column, const std::string& file) {
  const std::optional<Link> link = read_link(row.words[column]);
  if (link) return *link;
  throw wrong(file, row.number,
              fmt::format("found '{}', wanted NV1 to NV{}, PIX, PXB, PHB, NODE or SYS", excerpt(row.words[column]),
                          Topology::kMostLanes));
}

}  // namespace

Topology read_smi_text(std::string_view text, const std::string& file) {
  if (text.size() > kMostBytes) throw wrong(file, 1, fmt::format("found more than {} bytes", kMostBytes));
  const std::vector<Line> lines = lines_of(text);
  const Table table = table_of(lines, file);
  const std::vector<std::string>& header = table.header->words;
  const auto gpus = static_cast<std::size_t>(std::find_if_not(header.begin(), header.end(), is_gpu) - header.begin());
  if (gpus > Topology::kMostDevices) {
    throw wrong(file, table.header->number,
                fmt::format("found {} GPUs, wanted at most {}", gpus, Topology::kMostDevices));
  }
  if (table.rows.size() != gpus) {
    throw wrong(file, table.header->number, fmt::format("found {} GPUs and {} rows", gpus, table.rows.size()));
  }
  const std::set<std::string> names(header.begin(), header.begin() + static_cast<std::ptrdiff_t>(gpus));
  if (names.size() < gpus) throw wrong(file, table.header->number, "found a GPU twice, wanted each once");
  const std::size_t from_end = node_column(header);
  std::vector<Accelerator> devices;
  for (std::size_t i = 0; i < gpus; ++i) {
    const Line& row = *table.rows[i];
    if (row.words.front() != header[i]) {
      throw wrong(file, row.number, fmt::format("found {}, wanted {}", excerpt(row.words.front()), excerpt(header[i])));
    }
    if (row.words.size() <= gpus) {
      throw wrong(file, row.number, fmt::format("found {} links, wanted {}", row.words.size() - 1, gpus));
    }
    const bool has_node = from_end > 0 && row.words.size() > gpus + from_end;
    devices.push_back({header[i], has_node ? number_of(row.words[row.words.size() - from_end]) : -1});
  }
  Topology machine("nvidia-smi", std::move(devices));
  for (std::size_t a = 0; a < gpus; ++a) {
    for (std::size_t b = 0; b < a; ++b) {
      const Link link = link_in(*table.rows[a], b + 1, file);
      if (link != link_in(*table.rows[b], a + 1, file)) {
        throw wrong(file, table.rows[a]->number,
                    fmt::format("{} and {}: found {} in one direction and {} in the other", header[a], header[b],
                                to_text(link), table.rows[b]->words[a + 1]));
      }
      machine.connect(static_cast<int>(a), static_cast<int>(b), link);
    }
  }
  return machine;
}

}  // namespace hfta::engine
