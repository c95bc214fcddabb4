#include "store/parts_checksum.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <span>
#include <vector>

#include "store/container_format.h"

namespace troupe {
namespace {

TEST(PartsChecksum, IsThatOfAllBytesTogetherHoweverTheyCome) {
  std::vector<std::byte> bytes(5000);
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = std::byte(i * 7);
  for (const std::size_t part : {1, 64, 999, 5000}) {
    PartsChecksum checksum;
    for (std::size_t at = 0; at < bytes.size(); at += part) {
      checksum.Add(std::span(bytes).subspan(at, std::min(part, bytes.size() - at)));
    }
    EXPECT_EQ(checksum.value(), ContainerChecksum(bytes)) << part;
  }
  EXPECT_EQ(PartsChecksum().value(), ContainerChecksum({}));
}

}  // namespace
}  // namespace troupe
