#pragma once
/// Waiting in a loop.

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace hfta {

/// Tells the processor that this loop waits for another thread to write something.
inline void pause_in_loop() {
#if defined(__x86_64__)
  _mm_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

}  // namespace hfta
