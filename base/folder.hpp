#pragma once
/// Folders that are held open, so that nobody can put another folder or a link under a name between two calls.

#include <cstddef>
#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace hfta {

/// An open file descriptor, closed by the destructor.
class Descriptor {
 public:
  explicit Descriptor(int number = -1) : number_(number) {}
  ~Descriptor();
  Descriptor(Descriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(number_, other.number_);
    return *this;
  }
  [[nodiscard]] int get() const { return number_; }

 private:
  int number_;
};

/// A folder by its descriptor: names are looked up in it and in no other, whatever its path has come to mean since.
/// Entries are taken as what they are: no link is followed, no pipe waited for. Where anyone may write to the folder
/// (/tmp), an entry must belong to this user or to the folder's owner. Every failure is an Error{kStorage} that names
/// the path and the system's reason. Names are single components.
class Folder {
 public:
  /// The folder at a path that the user named: links in it are followed. Throws if it is absent.
  explicit Folder(std::filesystem::path path);
  /// Opens `path`, which is `root` or lies below it: links are followed in `root` alone. nullopt if it is absent.
  static std::optional<Folder> find(const std::filesystem::path& root, const std::filesystem::path& path);
  /// Opens `path` as find() does, and first makes what is missing below `root`, durably.
  static Folder make(const std::filesystem::path& root, const std::filesystem::path& path);

  [[nodiscard]] const std::filesystem::path& path() const { return path_; }

  /// The folder of that name; nullopt if there is none. Throws if it is no folder.
  [[nodiscard]] std::optional<Folder> folder(const std::string& name) const;
  /// The folder of that name, which is made, durably, where it is absent.
  [[nodiscard]] Folder made_folder(const std::string& name) const;
  /// A regular file, opened with `flags` (O_RDONLY or O_WRONLY). nullopt if there is none of that name; throws if it is
  /// a link, a folder, a pipe or a device.
  [[nodiscard]] std::optional<Descriptor> file(const std::string& name, int flags) const;
  /// A new file for writing, readable as the umask allows: its name is `prefix` (cut where names have to be shorter)
  /// and 16 random characters.
  [[nodiscard]] std::pair<std::string, Descriptor> new_file(const std::string& prefix) const;

  /// True for a regular file that is no link.
  [[nodiscard]] bool has_file(const std::string& name) const;
  /// Names of the regular files, sorted.
  [[nodiscard]] std::vector<std::string> files() const;
  /// A name in the folder and the kind of its entry; no link is followed.
  struct Entry {
    std::string name;
    const char* kind = "";  ///< "a file", "a folder", "a symbolic link", "a pipe", "a socket" or "a device".
    bool is_file = false, is_folder = false;
  };
  /// All entries, sorted by name.
  [[nodiscard]] std::vector<Entry> entries() const;
  /// Replaces what is at `to`, if that is no folder. Returns 0, or errno.
  [[nodiscard]] int rename(const std::string& from, const std::string& to) const;
  /// Moves a file, link or folder to a folder of the same file system; where the name is taken there, a number is
  /// added. Returns the name it got.
  [[nodiscard]] std::string move(const std::string& name, const Folder& to) const;
  /// Removes a file, link or pipe; an absent one is no error.
  void remove(const std::string& name) const;
  /// Returns when all that was made, renamed and removed here is on the disk.
  void sync() const;
  /// Bytes that may still be written here; nullopt if the system does not say.
  [[nodiscard]] std::optional<std::size_t> room() const;

 private:
  Folder(std::filesystem::path path, Descriptor descriptor);
  [[noreturn]] void fail(const std::string& name, const char* action, int error) const;
  void check_owner(const std::string& name, unsigned owner) const;
  void list(const std::function<void(const std::string& name, unsigned char type)>& take) const;

  std::filesystem::path path_;
  Descriptor descriptor_;
  unsigned owner_ = 0;
  bool open_to_all_ = false;
};

/// The file's remaining bytes. Continues after short reads and interruptions. Throws Error{kStorage} naming `path`,
/// also where there are more than `limit`.
[[nodiscard]] std::vector<std::byte> read_rest(const Descriptor& file, const std::filesystem::path& path,
                                               std::size_t limit);
/// Writes all bytes to a descriptor; continues after short writes and interruptions. Returns 0, or errno.
[[nodiscard]] int write_all(int file, std::span<const std::byte> bytes);
/// Returns 0, or errno. A failure is final: the kernel may have dropped the dirty pages (ATC'20, "Can Applications
/// Recover from fsync Failures?"), so a second try could report success for lost bytes. An interruption is no failure.
[[nodiscard]] int sync_file(const Descriptor& file);

}  // namespace hfta
