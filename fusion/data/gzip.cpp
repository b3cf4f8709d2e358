#include "fusion/data/gzip.hpp"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <limits>

#include "fusion/data/file_bytes.hpp"

namespace hfta::fusion {
namespace {

constexpr std::size_t kMostRatio = 100;
constexpr std::size_t kAlwaysAllowed = std::size_t{16} << 20;
constexpr std::size_t kPiece = std::size_t{1} << 20;

class Inflater {
 public:
  Inflater(std::span<const std::byte> bytes, const std::string& place) : rest_(bytes), place_(place) {
    constexpr int kGzipOnly = 16 + MAX_WBITS;
    if (inflateInit2(&stream_, kGzipOnly) != Z_OK) fail_at(place_, "cannot begin to inflate it");
  }
  ~Inflater() { inflateEnd(&stream_); }
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;

  /// Fills `out` as far as the file goes; returns how far.
  std::size_t read(std::span<std::byte> out) {
    stream_.next_out = reinterpret_cast<Bytef*>(out.data());
    stream_.avail_out = static_cast<uInt>(out.size());
    while (stream_.avail_out > 0 && !(ended_ && rest_.empty())) step();
    return out.size() - stream_.avail_out;
  }

 private:
  void step() {
    // Members may follow one another, as `cat a.gz b.gz` makes them.
    if (ended_) inflateReset(&stream_);
    const std::size_t most = std::min<std::size_t>(rest_.size(), std::numeric_limits<uInt>::max());
    stream_.next_in = reinterpret_cast<const Bytef*>(rest_.data());
    stream_.avail_in = static_cast<uInt>(most);
    const int result = inflate(&stream_, Z_NO_FLUSH);
    rest_ = rest_.subspan(most - stream_.avail_in);
    ended_ = result == Z_STREAM_END;
    // Tapes and block devices pad a file with zeros; gzip(1) skips them.
    if (ended_ && std::all_of(rest_.begin(), rest_.end(), [](std::byte b) { return b == std::byte{0}; })) rest_ = {};
    if (ended_ || result == Z_OK) return;
    if (result == Z_BUF_ERROR && !rest_.empty()) return;
    fail_at(place_, result == Z_BUF_ERROR ? "found a gzip file that is cut short" : "found a damaged gzip file");
  }

  z_stream stream_{};
  std::span<const std::byte> rest_;
  const std::string& place_;
  bool ended_ = false;
};

}  // namespace

std::vector<std::byte> inflate_gzip(std::span<const std::byte> bytes, const std::string& place) {
  constexpr std::array kMagic = {std::byte{0x1f}, std::byte{0x8b}};
  if (bytes.size() >= kMagic.size() && !std::equal(kMagic.begin(), kMagic.end(), bytes.begin())) {
    fail_at(place, "found a file that is not gzipped, wanted one as its name says");
  }
  const std::size_t most = std::max(kAlwaysAllowed, bytes.size() * kMostRatio);
  Inflater inflater(bytes, place);
  std::vector<std::byte> out;
  for (std::size_t done = 0;;) {
    out.resize(done + kPiece);
    done += inflater.read(std::span(out).subspan(done));
    if (done > most) {
      fail_at(place,
              fmt::format("found {} bytes that inflate to more than {}, wanted at most {} times as many; if they "
                          "do, inflate the file",
                          bytes.size(), most, kMostRatio));
    }
    if (done == out.size()) continue;
    out.resize(done);
    return out;
  }
}

}  // namespace hfta::fusion
