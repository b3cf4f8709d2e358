#include "base/bytes.hpp"

#include <catch2/catch.hpp>
#include <limits>

namespace hfta {

TEST_CASE("amounts of memory are read with their units") {
  const auto [text, bytes] = GENERATE(table<const char*, std::int64_t>({{"0", 0},
                                                                        {"1000", 1000},
                                                                        {"7B", 7},
                                                                        {"1KiB", 1024},
                                                                        {"1kb", 1000},
                                                                        {"512 MiB", 512LL << 20},
                                                                        {"8GiB", 8LL << 30},
                                                                        {"8gib", 8LL << 30},
                                                                        {"1.5GB", 1500000000},
                                                                        {"0.3 B", 0},
                                                                        {"2TiB", 2LL << 40},
                                                                        {"1TB", 1000000000000}}));
  INFO(text);
  CHECK(bytes_from(text) == bytes);
}

TEST_CASE("what is no amount of memory is none") {
  for (const char* text :
       {"", " ", "GiB", "8 G", "8G", "-1", "-1GiB", "1e9", "8  GiB", " 8GiB", "8GiB ", "8GiBx", "1..5GB", "nan", "inf",
        "0x10", "9223372036854775808", "8388608TiB", "99999999999999999999TiB"}) {
    INFO(text);
    CHECK_FALSE(bytes_from(text));
  }
  CHECK(bytes_from("8388607TiB") == 8388607LL << 40);
}

TEST_CASE("amounts of memory in words") {
  CHECK(bytes_text(0) == "0 bytes");
  CHECK(bytes_text(1023) == "1023 bytes");
  CHECK(bytes_text(1024) == "1.0 KiB");
  CHECK(bytes_text(1536LL << 20) == "1.5 GiB");
  CHECK(bytes_text(1000000) == "976.6 KiB");
  CHECK(bytes_text(-(5LL << 30)) == "-5.0 GiB");
  CHECK(bytes_text(std::numeric_limits<std::int64_t>::max()) == "8388608.0 TiB");
}

}  // namespace hfta
