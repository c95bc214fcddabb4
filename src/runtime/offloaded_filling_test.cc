#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/offloaded_for_test.h"

namespace troupe {
namespace {

using testing::ElementsAre;
using testing::UnorderedElementsAre;

class OffloadedFillingTest : public OffloadedExpertsTest {
 protected:
  void SetUp() override { Open(5); }

  const std::vector<std::vector<std::uint32_t>> first_ = {{3, 1}, {0, 2}};
};

TEST_F(OffloadedFillingTest, WhatTheCacheBeginsWithIsThereWhenItIsAskedFor) {
  ASSERT_TRUE(experts_->Fill(first_, {}).ok());
  EXPECT_EQ(experts_->report().filled.experts, 4u);
  const std::size_t read = reader_->submitted();
  experts_->OnPassBegins({});
  Ask(0, {1, 3});
  EXPECT_THAT(Take(false), UnorderedElementsAre(1, 3));
  Ask(1, {0, 2});
  EXPECT_THAT(Take(false), UnorderedElementsAre(0, 2));
  EXPECT_EQ(reader_->submitted(), read);
  EXPECT_EQ(experts_->usage().hits, 4u);
}

TEST_F(OffloadedFillingTest, FillingIsNoUseOfAnyRequest) {
  ASSERT_TRUE(experts_->Fill(first_, {}).ok());
  const ExpertUsage usage = experts_->usage();
  EXPECT_EQ(usage.hits, 0u);
  EXPECT_EQ(usage.misses, 0u);
}

TEST_F(OffloadedFillingTest, WhatTheCacheBeganWithIsEvictedAsAllElseIs) {
  ASSERT_TRUE(experts_->Fill(first_, {}).ok());
  for (int round = 0; round < 2; ++round) {
    experts_->OnPassBegins({});
    Ask(0, {0, 1, 2, 3});
    TakeAll(4);
    Ask(1, {0, 1, 2, 3});
    TakeAll(4);
  }
  EXPECT_GT(experts_->report().cache.evictions, 0u);
}

TEST_F(OffloadedFillingTest, SaysHowFarItIsAndStopsWhereItIsToldTo) {
  std::vector<std::uint64_t> done;
  const Status stopped = experts_->Fill(first_, [&](Bytes so_far, Bytes all) {
    EXPECT_EQ(all, 4 * experts_->loads().slot_bytes());
    done.push_back(so_far / experts_->loads().slot_bytes());
    return done.size() < 2;
  });
  EXPECT_EQ(stopped.code(), Code::kCancelled);
  EXPECT_THAT(done, ElementsAre(0, 2));
}

TEST_F(OffloadedFillingTest, AnExpertThatCannotBeReadIsFoundBeforeAnybodyAsks) {
  reader_->SetScript([](const ReadRequest&) { return FakeReader::Fault::kError; });
  EXPECT_FALSE(experts_->Fill(first_, {}).ok());
}

}  // namespace
}  // namespace troupe
