// The function that LIBXSMM calls in place of open(): see cmake/FindHftaXsmm.cmake.

#include <cerrno>

extern "C" int hfta_xsmm_open(const char* path, int flags, ...);

// Refused, it goes on without its file, as where the folder cannot be written.
int hfta_xsmm_open(const char* /*path*/, int /*flags*/, ...) {
  errno = EACCES;
  return -1;
}
