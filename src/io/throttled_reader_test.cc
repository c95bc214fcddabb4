#include "io/throttled_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "testing/fake_reader.h"

namespace troupe {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr Nanos kMs = 1'000'000;
constexpr std::size_t kKilobyte = 1000;

// A link on which a kilobyte takes a millisecond.
constexpr LinkSpeed kSlow = {.bytes_per_second = 1e6};
constexpr LinkSpeed kSlowAndFar = {.bytes_per_second = 1e6, .latency_seconds = 5e-3};

class ThrottledReaderTest : public testing::Test {
 protected:
  void Link(const LinkSpeed& link) {
    auto fake = std::make_unique<FakeReader>(8);
    fake_ = fake.get();
    fake_->AddFile(3, file_);
    reader_ = MakeThrottledReader(std::move(fake), link, clock_);
  }

  void Submit(std::uint64_t tag, std::size_t bytes) {
    const ReadRequest request = {
        .fd = 3, .offset = tag, .target = std::span(memory_).first(bytes), .tag = tag};
    reader_->Submit({&request, 1});
  }

  // What comes by the time `at`.
  std::vector<std::uint64_t> TagsAt(Nanos at) {
    clock_.Advance(at - clock_.Now());
    std::vector<ReadAnswer> answers;
    reader_->Collect(answers, 0);
    std::vector<std::uint64_t> tags;
    for (const ReadAnswer& answer : answers) tags.push_back(answer.tag);
    return tags;
  }

  ManualClock clock_;
  std::vector<std::byte> file_ = std::vector<std::byte>(100 * kKilobyte);
  std::vector<std::byte> memory_ = std::vector<std::byte>(100 * kKilobyte);
  FakeReader* fake_ = nullptr;
  std::unique_ptr<AsyncReader> reader_;
};

TEST_F(ThrottledReaderTest, AReadComesWhenItsBytesHavePassedAndTheLatencyToTheNanosecond) {
  Link(kSlowAndFar);
  Submit(1, 3 * kKilobyte);
  EXPECT_THAT(TagsAt(8 * kMs - 1), IsEmpty());
  EXPECT_EQ(reader_->under_way(), 1u);
  EXPECT_THAT(TagsAt(8 * kMs), ElementsAre(1));
  EXPECT_EQ(reader_->under_way(), 0u);
}

TEST_F(ThrottledReaderTest, BytesPassOneRequestAfterTheOtherAndLatenciesOverlap) {
  Link(kSlowAndFar);
  Submit(1, 2 * kKilobyte);
  Submit(2, 1 * kKilobyte);
  Submit(3, 4 * kKilobyte);
  EXPECT_THAT(TagsAt(7 * kMs - 1), IsEmpty());
  EXPECT_THAT(TagsAt(7 * kMs), ElementsAre(1));
  EXPECT_THAT(TagsAt(8 * kMs - 1), IsEmpty());
  EXPECT_THAT(TagsAt(8 * kMs), ElementsAre(2));
  EXPECT_THAT(TagsAt(12 * kMs - 1), IsEmpty());
  EXPECT_THAT(TagsAt(12 * kMs), ElementsAre(3));
}

TEST_F(ThrottledReaderTest, AnIdleLinkSavesNothingUp) {
  Link(kSlow);
  EXPECT_THAT(TagsAt(50 * kMs), IsEmpty());
  Submit(1, 2 * kKilobyte);
  EXPECT_THAT(TagsAt(52 * kMs - 1), IsEmpty());
  EXPECT_THAT(TagsAt(52 * kMs), ElementsAre(1));
}

TEST_F(ThrottledReaderTest, ALaterRequestWaitsForTheBytesBeforeIt) {
  Link(kSlow);
  Submit(1, 10 * kKilobyte);
  EXPECT_THAT(TagsAt(9 * kMs), IsEmpty());
  Submit(2, 1 * kKilobyte);
  EXPECT_THAT(TagsAt(11 * kMs - 1), ElementsAre(1));
  EXPECT_THAT(TagsAt(11 * kMs), ElementsAre(2));
}

TEST_F(ThrottledReaderTest, ManyReadsTogetherPassAtTheLinksRate) {
  Link(kSlow);
  for (int round = 0; round < 10; ++round) {
    for (std::uint64_t tag = 0; tag < 8; ++tag) Submit(tag, 125);  // 8 * 125: a kilobyte
    const Nanos end = (round + 1) * kMs;
    EXPECT_EQ(TagsAt(end - 1).size(), 7u);
    EXPECT_THAT(TagsAt(end), ElementsAre(7));
  }
}

TEST_F(ThrottledReaderTest, WithoutALimitOnlyTheLatencyCounts) {
  Link({.bytes_per_second = 0, .latency_seconds = 2e-3});
  Submit(1, 100 * kKilobyte);
  Submit(2, 100 * kKilobyte);
  EXPECT_THAT(TagsAt(2 * kMs - 1), IsEmpty());
  EXPECT_THAT(TagsAt(2 * kMs), ElementsAre(1, 2));
}

TEST_F(ThrottledReaderTest, AReadThatTheReaderBehindStillHasIsNotThereHoweverFastTheLink) {
  Link(kSlow);
  fake_->Hold(true);
  Submit(1, kKilobyte);
  EXPECT_THAT(TagsAt(100 * kMs), IsEmpty());
  fake_->Hold(false);
  EXPECT_THAT(TagsAt(100 * kMs), ElementsAre(1));
}

TEST_F(ThrottledReaderTest, WaitsForTheReaderBehindButNeverForTheHandOfTheClock) {
  Link(kSlow);
  fake_->Hold(true);  // gives one answer to whoever waits
  Submit(1, kKilobyte);
  Submit(2, kKilobyte);
  std::vector<ReadAnswer> answers;
  reader_->Collect(answers, std::nullopt);
  EXPECT_THAT(answers, IsEmpty());
  clock_.Advance(1 * kMs);
  reader_->Collect(answers, std::nullopt);
  ASSERT_EQ(answers.size(), 1u);
  EXPECT_EQ(answers[0].tag, 1u);
}

TEST_F(ThrottledReaderTest, PassesErrorsAndShortReadsOnWithTheCallersTags) {
  Link(kSlow);
  fake_->SetScript([](const ReadRequest& request) {
    return request.offset == 1 ? FakeReader::Fault::kError : FakeReader::Fault::kShort;
  });
  Submit(1, kKilobyte);
  Submit(2, kKilobyte);
  clock_.Advance(kMs * 2);
  std::vector<ReadAnswer> answers;
  reader_->Collect(answers, 0);
  ASSERT_EQ(answers.size(), 2u);
  EXPECT_EQ(answers[0].tag, 1u);
  EXPECT_FALSE(answers[0].status.ok());
  EXPECT_EQ(answers[1].tag, 2u);
  EXPECT_EQ(answers[1].bytes, kKilobyte / 2);
}

TEST_F(ThrottledReaderTest, SaysWhatItPutsBeforeWhat) {
  Link({.bytes_per_second = 1 << 20, .latency_seconds = 1e-4});
  EXPECT_EQ(reader_->name(), "fake behind 1.0 MiB/s/100us");
}

}  // namespace
}  // namespace troupe
