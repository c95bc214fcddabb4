#include "fetch/sha256.h"

#include <gtest/gtest.h>

#include <string_view>

namespace troupe {
namespace {

std::span<const std::byte> HashedBytes(std::string_view text) {
  return std::as_bytes(std::span(text));
}

TEST(Sha256, IsThatOfTheStandardsExamples) {
  Sha256 empty;
  EXPECT_EQ(empty.Finish(), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  Sha256 abc;
  abc.Add(HashedBytes("a"));
  abc.Add(HashedBytes("bc"));
  EXPECT_EQ(abc.Finish(), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

}  // namespace
}  // namespace troupe
