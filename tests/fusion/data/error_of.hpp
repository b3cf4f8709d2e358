#pragma once

#include <catch2/catch.hpp>
#include <functional>
#include <string>

#include "base/error.hpp"

namespace hfta::fusion::test {

/// The message of the Error{kConfig} that `work` throws; "(none)" if it throws none.
inline std::string error_of(const std::function<void()>& work) {
  try {
    work();
  } catch (const Error& error) {
    CHECK(error.kind() == ErrorKind::kConfig);
    return error.what();
  }
  return "(none)";
}

}  // namespace hfta::fusion::test
