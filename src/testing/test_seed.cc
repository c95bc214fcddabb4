#include "testing/test_seed.h"

#include <cstdio>
#include <cstdlib>

namespace troupe {

std::uint64_t TestSeed() {
  std::uint64_t seed = 20240229;
  if (const char* text = std::getenv("TROUPE_SEED")) seed = std::strtoull(text, nullptr, 10);
  std::fprintf(stderr, "TROUPE_SEED=%llu\n", static_cast<unsigned long long>(seed));
  return seed;
}

std::size_t TestCases(std::size_t usual) {
  const char* const text = std::getenv("TROUPE_CASES");
  return text != nullptr ? std::strtoull(text, nullptr, 10) : usual;
}

}  // namespace troupe
