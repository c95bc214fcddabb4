// Every public header, before any other and in a program that also sees the engine's own: no name
// of one is another's.
#include <troupe/model.h>
#include <troupe/version.h>

#include <gtest/gtest.h>

#include "base/bytes.h"
#include "runtime/batcher.h"
#include "runtime/engine.h"
#include "text/chat_template.h"

// A program that takes the literals and no other name.
namespace embedder {
using namespace troupe::literals;
constexpr auto kMemory = 6_GiB;
class Bytes;
}  // namespace embedder

namespace troupe {
namespace {

TEST(Headers, LiteralsComeWithoutTheNamesBesideThem) {
  EXPECT_EQ(embedder::kMemory, Bytes(std::uint64_t{6} << 30));
}

TEST(Headers, StatusSaysWhenToComeAgain) {
  const Status now = Status(Code::kUnavailable, "full");
  EXPECT_EQ(now.retry_after(), 0);
  EXPECT_EQ(Status(now).WithRetryAfter(2.5).retry_after(), 2.5);
  EXPECT_EQ(Status(now).WithRetryAfter(2.5).WithContext("x").retry_after(), 2.5);
}

TEST(Headers, APlanOfNothingHasEverythingInMemory) { EXPECT_TRUE(Plan().AllInMemory()); }

}  // namespace
}  // namespace troupe
