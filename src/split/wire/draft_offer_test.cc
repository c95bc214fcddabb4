#include "split/wire/draft_offer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/rng.h"
#include "testing/edited_text.h"
#include "testing/test_seed.h"

namespace troupe {
namespace {

using testing::HasSubstr;

Result<DraftOffer> ReadOffer(const std::string& text) {
  return ReadJson<DraftOffer>("request", text, ReadDraftOffer);
}

TEST(DraftOffer, IsReadAsItWasWritten) {
  Rng rng(TestSeed());
  for (int round = 0; round < 300; ++round) {
    DraftOffer offer{.drafts = rng.Next(),
                     .number = rng.Next(),
                     .from = rng.Below(5000),
                     .tokens = std::vector<TokenId>(rng.Below(kMostDraftTokens + 1))};
    for (TokenId& token : offer.tokens) token = static_cast<TokenId>(rng.Below(1U << 31));
    ASSERT_EQ(ReadOffer(Encode(offer)).value(), offer);
    const DraftVerdict verdict{.checked = rng.Next(), .right = rng.Next()};
    ASSERT_EQ(DecodeDraftVerdict(Encode(verdict)).value(), verdict);
  }
}

TEST(DraftOffer, SaysWhereItIsWrong) {
  const std::string good = Encode(DraftOffer{.drafts = 5, .number = 1, .from = 3, .tokens = {7}});
  const auto message = [&](std::string_view from, std::string_view to) {
    return ReadOffer(Edited(good, from, to)).status().message();
  };
  EXPECT_THAT(message("\"from\":3", "\"from\":-3"), HasSubstr("from"));
  EXPECT_THAT(message("\"draft\":[7]", "\"draft\":[7.5]"), HasSubstr("draft[0]"));
  EXPECT_THAT(message("\"draft\":[7]", "\"draft\":7"), HasSubstr("array of token ids"));
  EXPECT_THAT(message("\"drafts\":5,", ""), HasSubstr("drafts"));
  const DraftOffer longer{.tokens = std::vector<TokenId>(kMostDraftTokens + 1, 7)};
  EXPECT_THAT(ReadOffer(Encode(longer)).status().message(), HasSubstr("at most 64 tokens"));
  EXPECT_THAT(DecodeDraftVerdict("{}").status().message(), HasSubstr("checked"));
}

}  // namespace
}  // namespace troupe
