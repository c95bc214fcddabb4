#include "store/running_checksum.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "base/rng.h"
#include "store/container_format.h"
#include "testing/test_seed.h"

namespace troupe {
namespace {

TEST(RunningChecksum, OfAnyPiecesIsThatOfTheWhole) {
  Rng rng(TestSeed());
  for (int i = 0; i < 50; ++i) {
    std::vector<std::byte> bytes(rng.Below(5000));
    for (std::byte& byte : bytes) byte = static_cast<std::byte>(rng.Below(256));
    RunningChecksum checksum;
    for (std::size_t at = 0; at < bytes.size();) {
      const std::size_t size = std::min<std::size_t>(1 + rng.Below(900), bytes.size() - at);
      checksum.Add(std::span(bytes).subspan(at, size));
      at += size;
    }
    ASSERT_EQ(checksum.value(), ContainerChecksum(bytes));
  }
}

}  // namespace
}  // namespace troupe
