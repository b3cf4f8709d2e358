#pragma once
/// Comparisons for the storage tests.

#include <catch2/catch.hpp>
#include <filesystem>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "trials/trial.hpp"

namespace hfta::storage::testing {

/// Equal in everything; NaN equals NaN, 1 differs from 1.0 and 0.0 from -0.0 in parameters.
void check_equal(const std::vector<trials::Trial>& found, const std::vector<trials::Trial>& wanted);

/// The message of the Error of that kind which `call` throws; another outcome fails the test.
template <typename Call>
std::string message_of(ErrorKind kind, Call call) {
  try {
    call();
  } catch (const Error& error) {
    CHECK(static_cast<int>(error.kind()) == static_cast<int>(kind));
    return error.what();
  }
  FAIL("no error was thrown");
  return {};
}

/// The Error{kStorage} that `call` throws names `file` and says `words`.
template <typename Call>
void check_refused(const std::filesystem::path& file, const std::string& words, Call call) {
  const std::string message = message_of(ErrorKind::kStorage, call);
  CHECK_THAT(message, Catch::Contains(file.filename().string()));
  CHECK_THAT(message, Catch::Contains(words));
  CHECK(message.find('\n') == std::string::npos);
}

}  // namespace hfta::storage::testing
