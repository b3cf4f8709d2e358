#pragma once
/// What is told of a loss that depends on nothing that is trained. Internal to fusion.

#include "base/error.hpp"

namespace hfta::fusion {

/// Throws Error{kConfig}.
[[noreturn]] inline void fail_untrained() {
  throw Error(ErrorKind::kConfig,
              "model: found no trained parameter that the loss depends on, wanted one; what runs under torch.no_grad() "
              "or is detached does not count");
}

}  // namespace hfta::fusion
