#include "cluster/second_opinion.h"

#include <gtest/gtest.h>

#include <cstring>

#include "cluster/wire/answer.h"
#include "cluster/wire/ask.h"

namespace troupe {
namespace {

constexpr std::uint32_t kOpinionWidth = 4;
constexpr LinkId kThird = 9;

class SecondOpinionTest : public testing::Test {
 protected:
  using Verdict = SecondOpinion::Verdict;

  // Eight rows, of which the last six are not as they were computed here.
  bool Dispute(Nanos now = 0) {
    SpotCheck check{.start = 5,
                    .id = {2, 3},
                    .rows = 8,
                    .asked = std::vector<std::byte>(8 * kOpinionWidth * sizeof(float)),
                    .answer = std::vector<float>(8 * kOpinionWidth, 1)};
    std::vector<float> own(8 * kOpinionWidth, 1);
    for (std::size_t i = 2 * kOpinionWidth; i < own.size(); ++i) own[i] = 2;
    for (std::size_t i = 0; i < 8; ++i) check.asked[i * 16] = static_cast<std::byte>(i);
    return opinion_.Ask(std::move(check), std::move(own), kThird, now);
  }
  // As the third one answers, in two messages.
  void Answer(float value, LinkId link = kThird) {
    const std::uint64_t call = DecodePeerAsk(sent_).value().call;
    const std::vector<float> rows(2 * kOpinionWidth, value);
    for (const bool last : {false, true}) {
      const std::vector<std::byte> frame = Encode(
          PeerAnswer{.call = call,
                     .last = last,
                     .experts = {{3, 2}},
                     .rows = {RowForm::kFloat, kOpinionWidth, 2, std::as_bytes(std::span(rows))}});
      EXPECT_TRUE(opinion_.OnFrame(link, frame));
    }
  }
  std::optional<Verdict> Found(Nanos now = 0) {
    const auto done = opinion_.TakeDone(now);
    return done ? std::optional(done->verdict) : std::nullopt;
  }

  std::vector<std::byte> sent_;
  Status status_;
  SecondOpinion opinion_{kOpinionWidth, [this](LinkId link, std::vector<std::byte> frame) {
                           EXPECT_EQ(link, kThird);
                           sent_ = std::move(frame);
                           return status_;
                         }};
};

TEST_F(SecondOpinionTest, AThirdNodeIsAskedForAFewOfTheRowsThatDiffer) {
  ASSERT_TRUE(Dispute());
  const PeerAsk ask = DecodePeerAsk(sent_).value();
  EXPECT_EQ(ask.layer, 2);
  ASSERT_EQ(ask.experts.size(), 1u);
  EXPECT_EQ(ask.experts[0].expert, 3);
  ASSERT_EQ(ask.rows.count, 4u);
  for (std::size_t i = 0; i < 4; ++i) EXPECT_EQ(ask.rows.Row(i)[0], static_cast<std::byte>(i + 2));
  EXPECT_EQ(Found(), std::nullopt);
  EXPECT_FALSE(Dispute()) << "one at a time";
}

TEST_F(SecondOpinionTest, WhoHasTheRowsThatTheThirdOneHasIsRight) {
  ASSERT_TRUE(Dispute());
  Answer(2);
  EXPECT_EQ(Found(), Verdict::kPeerWrong);
  ASSERT_TRUE(Dispute());
  Answer(1);
  EXPECT_EQ(Found(), Verdict::kOwnWrong);
  ASSERT_TRUE(Dispute());
  Answer(3);
  EXPECT_EQ(Found(), Verdict::kNone);
}

TEST_F(SecondOpinionTest, OneThatRefusesGoesOrIsSilentDecidesNothing) {
  ASSERT_TRUE(Dispute());
  const std::uint64_t call = DecodePeerAsk(sent_).value().call;
  EXPECT_TRUE(
      opinion_.OnFrame(kThird, Encode(PeerAskRefused{call, PeerAskRefused::Reason::kNotHeld, ""})));
  EXPECT_EQ(Found(), Verdict::kNone);
  ASSERT_TRUE(Dispute());
  opinion_.OnGone(kThird);
  EXPECT_EQ(Found(), Verdict::kNone);
  ASSERT_TRUE(Dispute());
  EXPECT_EQ(Found(9'000'000'000), std::nullopt);
  EXPECT_EQ(Found(10'000'000'000), Verdict::kNone);
  status_ = Error(Code::kUnavailable, "gone");
  EXPECT_FALSE(Dispute());
}

TEST_F(SecondOpinionTest, AnswersOfPassesAndOfOthersAreNotItsOwn) {
  ASSERT_TRUE(Dispute());
  EXPECT_FALSE(opinion_.OnFrame(kThird, Encode(PeerAskRefused{7, {}, ""})));
  Answer(2, kThird + 1);
  EXPECT_EQ(Found(), std::nullopt);
}

}  // namespace
}  // namespace troupe
