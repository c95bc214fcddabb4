#include "server/request_memory.h"

#include <gtest/gtest.h>

namespace troupe {
namespace {

TEST(RequestMemory, ARequestFindsRoomOnceAnotherHasGivenItsShareBack) {
  const RequestMemory memory(100_B);
  Result<RequestMemory::Share> first = memory.Take(60_B);
  ASSERT_TRUE(first.ok());
  const Status refused = memory.Take(41_B).status();
  EXPECT_EQ(refused.code(), Code::kUnavailable);
  EXPECT_GT(refused.retry_after(), 0);
  EXPECT_TRUE(memory.Take(40_B).ok());
  EXPECT_EQ(memory.taken(), 60_B);
  first = RequestMemory::Share();
  EXPECT_EQ(memory.taken(), Bytes());
  EXPECT_TRUE(memory.Take(100_B).ok());
}

TEST(RequestMemory, WhatNeverFindsRoomIsTheRequestsFault) {
  EXPECT_EQ(RequestMemory(100_B).Take(101_B).status().code(), Code::kInvalidArgument);
}

}  // namespace
}  // namespace troupe
