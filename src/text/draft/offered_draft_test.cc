#include "text/draft/offered_draft.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "text/draft/offered_text.h"

namespace troupe {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using enum Drafter::Part;

std::vector<TokenId> After(const OfferedDraft& offered, std::vector<TokenId> answer,
                           std::size_t most = 64) {
  return offered.After(answer, most).tokens;
}

TEST(OfferedDraft, SaysWhatFollowsAsLongAsTheAnswerGoesItsWay) {
  OfferedDraft offered;
  EXPECT_THAT(After(offered, {}), IsEmpty());
  offered.Offer(1, 2, {7, 8, 9});
  EXPECT_THAT(After(offered, {1, 2}), ElementsAre(7, 8, 9));
  EXPECT_THAT(After(offered, {1, 2}, 2), ElementsAre(7, 8));
  EXPECT_THAT(After(offered, {1, 2, 7}), ElementsAre(8, 9));
  EXPECT_THAT(After(offered, {1, 2, 6}), IsEmpty()) << "it went another way";
  EXPECT_THAT(After(offered, {1, 2, 7, 8, 9}), IsEmpty()) << "it came too late";
  EXPECT_THAT(After(offered, {1, 2, 7, 8, 9, 9}), IsEmpty());
  EXPECT_THAT(After(offered, {1}), IsEmpty()) << "it is about tokens that are not there yet";
}

TEST(OfferedDraft, IsWorthMoreTheMoreOfItWasRight) {
  OfferedDraft offered;
  offered.Offer(1, 0, {7, 8, 9});
  EXPECT_EQ(offered.After(std::vector<TokenId>{}, 9).evidence, 1u);
  EXPECT_EQ(offered.After(std::vector<TokenId>{7, 8}, 9).evidence, 3u);
}

TEST(OfferedDraft, AnOfferThatWasOvertakenIsForgotten) {
  OfferedDraft offered;
  offered.Offer(2, 0, {1, 2, 3});
  offered.Offer(1, 0, {1, 2});
  EXPECT_THAT(After(offered, {1, 2}), ElementsAre(3));
  offered.Offer(3, 1, {5});
  EXPECT_THAT(After(offered, {1}), ElementsAre(5));
}

TEST(OfferedDraft, CountsWhatWasChecked) {
  OfferedDraft offered;
  offered.NoteCheck(4, 3);
  offered.NoteCheck(2, 0);
  EXPECT_EQ(offered.counts(), (OfferedDraft::Counts{.checked = 6, .right = 3}));
}

TEST(OfferedText, IsAskedAtEachTokenOfTheAnswer) {
  const auto offered = std::make_shared<OfferedDraft>();
  OfferedText drafter(offered);
  const std::vector<TokenId> prompt = {1, 2}, answer = {7};
  drafter.Append(prompt, kPrompt);
  EXPECT_THAT(drafter.Propose(5).tokens, IsEmpty());
  offered->Offer(1, 0, {7, 8});
  EXPECT_THAT(drafter.Propose(5).tokens, ElementsAre(7, 8));
  drafter.Append(answer, kAnswer);
  EXPECT_THAT(drafter.Propose(5).tokens, ElementsAre(8));
  EXPECT_EQ(drafter.source(), DraftSource::kOffered);
}

}  // namespace
}  // namespace troupe
