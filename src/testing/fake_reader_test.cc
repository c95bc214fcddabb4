#include "testing/fake_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

namespace troupe {
namespace {

using Fault = FakeReader::Fault;

constexpr std::byte kUntouched{0xEE};

class FakeReaderTest : public testing::Test {
 protected:
  FakeReaderTest() {
    for (std::size_t i = 0; i < file_.size(); ++i) file_[i] = static_cast<std::byte>(i);
    reader_.AddFile(3, file_);
  }

  // The reads of 10 bytes at byte 100 * tag for these tags.
  void Submit(std::initializer_list<std::uint64_t> tags) {
    for (const std::uint64_t tag : tags) {
      const ReadRequest request = {.fd = 3, .offset = 100 * tag, .target = Target(tag), .tag = tag};
      reader_.Submit({&request, 1});
    }
  }

  std::span<std::byte> Target(std::uint64_t tag) {
    return std::span(memory_).subspan(tag * 10, 10);
  }

  std::size_t Wrong(std::uint64_t tag) {
    std::size_t wrong = 0;
    for (std::size_t i = 0; i < 10; ++i) wrong += Target(tag)[i] != file_[100 * tag + i];
    return wrong;
  }

  std::vector<ReadAnswer> Collect(std::optional<Nanos> wait) {
    std::vector<ReadAnswer> answers;
    reader_.Collect(answers, wait);
    return answers;
  }

  std::vector<std::uint64_t> TagsOf(std::optional<Nanos> wait) {
    std::vector<std::uint64_t> tags;
    for (const ReadAnswer& answer : Collect(wait)) tags.push_back(answer.tag);
    return tags;
  }

  ReadAnswer ReadWith(Fault fault) {
    reader_.SetScript([fault](const ReadRequest&) { return fault; });
    Submit({1});
    return Collect(0).at(0);
  }

  std::vector<std::byte> file_ = std::vector<std::byte>(1000);
  std::vector<std::byte> memory_ = std::vector<std::byte>(100, kUntouched);
  FakeReader reader_{8};
};

TEST_F(FakeReaderTest, FillsATargetWhenItIsAnsweredAndNotBefore) {
  Submit({1});
  EXPECT_THAT(Target(1), testing::Each(kUntouched));
  EXPECT_THAT(TagsOf(0), testing::ElementsAre(1));
  EXPECT_EQ(Wrong(1), 0u);
}

TEST_F(FakeReaderTest, CountsAndListsWhatWasAskedFor) {
  Submit({2, 1});
  Collect(0);
  EXPECT_EQ(reader_.submitted(), 2u);
  EXPECT_EQ(reader_.bytes_read(), 20u);
  EXPECT_THAT(reader_.log(), testing::ElementsAre(std::pair(3, 200u), std::pair(3, 100u)));
}

TEST_F(FakeReaderTest, WhileHeldGivesOneAnswerToThoseWhoWaitAndNoneToOthers) {
  reader_.Hold(true);
  Submit({1, 2, 3});
  EXPECT_THAT(TagsOf(0), testing::IsEmpty());
  EXPECT_THAT(TagsOf(1), testing::ElementsAre(1));
  EXPECT_THAT(TagsOf(std::nullopt), testing::ElementsAre(2));
  reader_.Hold(false);
  EXPECT_THAT(TagsOf(0), testing::ElementsAre(3));
}

TEST_F(FakeReaderTest, AnswersBackwardsWhenTold) {
  reader_.Reverse(true);
  Submit({1, 2, 3});
  EXPECT_THAT(TagsOf(0), testing::ElementsAre(3, 2, 1));
}

TEST_F(FakeReaderTest, AnErrorTouchesNothing) {
  EXPECT_THAT(ReadWith(Fault::kError).status.message(), testing::HasSubstr("Input/output error"));
  EXPECT_THAT(Target(1), testing::Each(kUntouched));
}

TEST_F(FakeReaderTest, AShortReadGivesTheFirstHalf) {
  const ReadAnswer answer = ReadWith(Fault::kShort);
  EXPECT_TRUE(answer.status.ok());
  EXPECT_EQ(answer.bytes, 5u);
  EXPECT_EQ(Wrong(1), 5u);
}

TEST_F(FakeReaderTest, AnEndGivesNothingAndNoError) {
  const ReadAnswer answer = ReadWith(Fault::kEnd);
  EXPECT_TRUE(answer.status.ok());
  EXPECT_EQ(answer.bytes, 0u);
}

TEST_F(FakeReaderTest, CorruptionChangesOneByteAndSaysNothing) {
  const ReadAnswer answer = ReadWith(Fault::kCorrupt);
  EXPECT_TRUE(answer.status.ok());
  EXPECT_EQ(answer.bytes, 10u);
  EXPECT_EQ(Wrong(1), 1u);
}

TEST_F(FakeReaderTest, ADeviceThatIsGoneStaysGone) {
  EXPECT_THAT(ReadWith(Fault::kGone).status.message(), testing::HasSubstr("No such device"));
  EXPECT_THAT(ReadWith(Fault::kNone).status.message(), testing::HasSubstr("No such device"));
}

TEST_F(FakeReaderTest, AsksItsScriptOnceForEachRequest) {
  std::vector<std::uint64_t> asked;
  reader_.SetScript([&](const ReadRequest& request) {
    asked.push_back(request.tag);
    return request.tag == 2 ? Fault::kError : Fault::kNone;
  });
  Submit({1, 2, 3});
  const auto answers = Collect(0);
  EXPECT_THAT(asked, testing::ElementsAre(1, 2, 3));
  ASSERT_EQ(answers.size(), 3u);
  for (const ReadAnswer& answer : answers) EXPECT_EQ(answer.status.ok(), answer.tag != 2);
}

}  // namespace
}  // namespace troupe
