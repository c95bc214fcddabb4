#include "server/end_drafts.h"

#include <gtest/gtest.h>

#include <optional>

namespace troupe {
namespace {

TEST(EndDrafts, AreFoundByTheirEndAndNameAsLongAsTheirAnswerLives) {
  EndDrafts drafts;
  {
    const EndDrafts::Place place = drafts.Open(1, 7);
    EXPECT_EQ(drafts.Find(1, 7), place.draft());
    EXPECT_EQ(drafts.Find(2, 7), nullptr) << "another end's";
    EXPECT_EQ(drafts.Find(1, 8), nullptr);
  }
  EXPECT_EQ(drafts.Find(1, 7), nullptr);
  EXPECT_EQ(drafts.size(), 0u);
}

TEST(EndDrafts, AnAnswerThatEndsLateTakesNoOtherOnesPlace) {
  EndDrafts drafts;
  std::optional<EndDrafts::Place> first(drafts.Open(1, 7));
  const EndDrafts::Place second = drafts.Open(1, 7);
  EXPECT_EQ(drafts.Find(1, 7), second.draft());
  first.reset();
  EXPECT_EQ(drafts.Find(1, 7), second.draft());
}

}  // namespace
}  // namespace troupe
