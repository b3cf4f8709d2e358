#pragma once
/// Numbers too small for a full mantissa, as moments of units that have died come to, count as 0 while one of these
/// lives: processors take a hundred times longer over them. What is lost is below 1e-37. For the thread that makes it.

#if defined(__SSE2__)
#include <immintrin.h>
#endif

namespace hfta::fusion::simd {

class FlushDenormals {
 public:
  FlushDenormals(const FlushDenormals&) = delete;
  FlushDenormals& operator=(const FlushDenormals&) = delete;
#if defined(__SSE2__)
  FlushDenormals() : before_(_mm_getcsr()) { _mm_setcsr(before_ | kFlush); }
  ~FlushDenormals() { _mm_setcsr(before_); }

 private:
  static constexpr unsigned kFlush = 0x8040;  // results to zero, operands are zeros
  unsigned before_;
#else
  FlushDenormals() {}
#endif
};

}  // namespace hfta::fusion::simd
