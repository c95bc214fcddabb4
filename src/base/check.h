// Broken invariants stop the program: TROUPE_CHECK always, TROUPE_DCHECK in debug builds only.
// For bugs of ours, never for bad input (that is status.h).
#pragma once

namespace troupe::internal {
[[noreturn]] void CheckFailed(const char* file, int line, const char* condition);
}  // namespace troupe::internal

#define TROUPE_CHECK(condition)                                        \
  do {                                                                 \
    if (!(condition)) [[unlikely]]                                     \
      ::troupe::internal::CheckFailed(__FILE__, __LINE__, #condition); \
  } while (false)

#ifdef NDEBUG
#define TROUPE_DCHECK(condition) \
  do {                           \
    (void)sizeof(condition);     \
  } while (false)
#else
#define TROUPE_DCHECK(condition) TROUPE_CHECK(condition)
#endif
