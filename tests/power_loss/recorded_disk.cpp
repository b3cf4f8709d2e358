#include "recorded_disk.hpp"

#include <fstream>
#include <iterator>
#include <sstream>
#include <stdexcept>
#include <utility>

namespace hfta::testing {
namespace {

namespace fs = std::filesystem;

std::string read_bytes(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) throw std::runtime_error("cannot read " + path.string());
  return {std::istreambuf_iterator<char>(in), {}};
}

std::string folder_of(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  return slash == std::string::npos ? "." : path.substr(0, slash);
}

}  // namespace

Tree read_tree(const fs::path& folder) {
  Tree tree;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    const std::string name = fs::relative(entry.path(), folder).string();
    entry.is_directory() ? tree[name + "/"] : tree[name] = read_bytes(entry.path());
  }
  return tree;
}

void write_tree(const fs::path& folder, const Tree& tree) {
  for (const auto& [name, bytes] : tree) {
    if (name.back() == '/') {
      fs::create_directories(folder / name);
    } else {
      std::ofstream(folder / name, std::ios::binary) << bytes;
    }
  }
}

/// The disk and, above it, what the system holds in memory.
class RecordedDisk::State {
 public:
  State(Crash crash, const Tree& before) : crash_(crash) {
    std::uint64_t id = std::uint64_t{1} << 60;  // no inode's number
    for (const auto& [name, bytes] : before) {
      const bool is_folder = name.back() == '/';
      const std::string path = is_folder ? name.substr(0, name.size() - 1) : name;
      names_[folder_of(path)][path] = is_folder ? kFolder : ++id;
      if (!is_folder) contents_[id] = {bytes, bytes};
    }
    durable_names_ = names_;
  }

  void apply(const Change& change) {
    if (change.what == "create") {
      names_[folder_of(change.path)][change.path] = change.file;
      contents_[change.file] = {};
    } else if (change.what == "mkdir") {
      names_[folder_of(change.path)][change.path] = kFolder;
    } else if (change.what == "unlink") {
      names_[folder_of(change.path)].erase(change.path);
    } else if (change.what == "rename") {
      auto& from = names_[folder_of(change.path)];
      names_[folder_of(change.to)][change.to] = from.at(change.path);
      from.erase(change.path);
    } else if (change.what == "write") {
      std::string& bytes = contents_[change.file].now;
      if (bytes.size() < change.number + change.data.size()) bytes.resize(change.number + change.data.size());
      bytes.replace(change.number, change.data.size(), change.data);
    } else if (change.what == "truncate") {
      contents_[change.file].now.resize(change.number);
    } else {
      sync(change);
    }
  }

  [[nodiscard]] Tree left() const {
    Tree tree;
    collect(".", tree);
    return tree;
  }

 private:
  static constexpr std::uint64_t kFolder = 0;
  struct Content {
    std::string now, durable;
  };
  using Names = std::map<std::string, std::map<std::string, std::uint64_t>>;  // by folder, then path: the file

  void sync(const Change& change) {
    if (change.what == "sync") {
      contents_[change.file].durable = contents_[change.file].now;
    } else if (change.what == "syncfolder") {
      durable_names_[change.path] = names_[change.path];
    } else {
      throw std::runtime_error("a log of another form: " + change.what);
    }
    if (crash_ == Crash::kJournaled) durable_names_ = names_;
  }

  void collect(const std::string& folder, Tree& tree) const {
    const Names& names = crash_ == Crash::kKill ? names_ : durable_names_;
    const auto found = names.find(folder);
    if (found == names.end()) return;
    for (const auto& [path, file] : found->second) {
      if (file == kFolder) {
        tree[path + "/"];
        collect(path, tree);
      } else {
        const Content& content = contents_.at(file);
        tree[path] = crash_ == Crash::kKill ? content.now : content.durable;
      }
    }
  }

  Crash crash_;
  Names names_, durable_names_;
  std::map<std::uint64_t, Content> contents_;
};

RecordedDisk::RecordedDisk(const fs::path& log, const Tree& before) : before_(before) {
  std::istringstream in(read_bytes(log));
  for (std::string line; std::getline(in, line);) {
    Change change;
    std::size_t bytes = 0;
    std::istringstream words(line);
    words >> change.told >> bytes >> change.what;
    if (change.what == "create" || change.what == "write" || change.what == "truncate" || change.what == "sync") {
      words >> change.file;
    }
    if (change.what == "write" || change.what == "truncate") words >> change.number;
    words.get();
    std::getline(words, change.path, '\t');
    std::getline(words, change.to);
    change.data.resize(bytes);
    in.read(change.data.data(), static_cast<std::streamsize>(bytes));
    changes_.push_back(std::move(change));
  }
}

std::vector<RecordedDisk::Left> RecordedDisk::after_every_change(Crash crash) const {
  State state(crash, before_);
  std::vector<Left> all = {{state.left(), 0, 0}};
  for (std::size_t i = 0; i < changes_.size(); ++i) {
    state.apply(changes_[i]);
    const std::size_t told = i + 1 < changes_.size() ? changes_[i + 1].told : changes_[i].told;
    Tree tree = state.left();
    if (tree == all.back().tree) {
      all.back().told = told;
      all.back().after = i + 1;
    } else {
      all.push_back({std::move(tree), told, i + 1});
    }
  }
  return all;
}

}  // namespace hfta::testing
