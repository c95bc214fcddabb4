// Which cuts a desk plans, by what it was told and has measured.
#include "split/cut_desk.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "api/model_access.h"
#include "api/tiny_model_for_test.h"

namespace troupe {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr std::uint32_t kLayer = 3;

class CutDeskTest : public testing::Test {
 protected:
  void Open(CutOptions options) {
    options.tokens = 256;
    options.layer = kLayer;
    desk_ = CutDesk::Create(
                *model_, clock_, cloud_, [](const std::function<void()>&) {}, std::move(options),
                [this](const std::string& line) { said_.push_back(line); }, {})
                .value();
    desk_->SetFacts({.own_read_seconds = 1e-3,
                     .cloud_read_seconds = 1e-4,
                     .round_trip_seconds = 1e-3,
                     .cloud_tokens = 256,
                     .cloud_goes_on = true});
  }
  void MeasureLink(double bytes_a_second) {
    desk_->meter().OnLink(static_cast<std::size_t>(bytes_a_second), 1.001, 1e-3);
  }
  void TearDown() override {
    desk_.reset();
    model_->Close();
  }

  std::unique_ptr<Model> model_ = OpenTiny({.sequences = 2});
  MonotonicClock clock_;
  HttpClient client_{{}};
  CloudSource cloud_{client_, clock_, {}, [](const Status&) {}};
  std::unique_ptr<CutDesk> desk_;
  std::vector<std::string> said_;
};

constexpr TriedCode kByInt8{.code = {.form = StateForm::kInt8}},
    kByInt4{.code = {.form = StateForm::kInt4}};
constexpr AnswerTask kMayLose{.read = 64, .tokens = 1, .one_token = true, .exact = false};
constexpr AnswerTask kMustNot{.read = 64, .tokens = 1, .one_token = true, .exact = true};
constexpr AnswerTask kGoesOn{.read = 64, .tokens = 20, .one_token = false, .exact = false};

TEST_F(CutDeskTest, ByTheLinkRowsLoseSomethingOnlyWhereItIsSlowAndNeverForThoseThatMustNot) {
  Open({.by_link = {{kLayer, {kByInt8}}}});
  MeasureLink(1e9);
  EXPECT_FALSE(desk_->Plan(kMayLose)->lossy);
  Open({.by_link = {{kLayer, {kByInt8}}}});
  MeasureLink(1e5);
  const std::optional<CutPlan> shorter = desk_->Plan(kMayLose), exact = desk_->Plan(kMustNot);
  EXPECT_TRUE(shorter->lossy);
  EXPECT_FALSE(exact->lossy);
  EXPECT_LT(1.05 * shorter->seconds, exact->seconds);
  const std::optional<CutPlan> longer = desk_->Plan(kGoesOn);
  EXPECT_TRUE(longer && !longer->lossy) << "its keys and values are of exact rows";
  EXPECT_TRUE(desk_->EncoderFor(*exact, /*exact=*/true)->code().exact());
  EXPECT_EQ(desk_->EncoderFor(*shorter, /*exact=*/false)->code().form, StateForm::kInt8);
}

TEST_F(CutDeskTest, KeepsToALimitOnlyIfItsCodesWereMeasuredTo) {
  Open({.by_link = {{kLayer, {kByInt8}}}, .most_loss = 0.01});
  EXPECT_TRUE(desk_->KeepsTo(0.01));
  EXPECT_FALSE(desk_->KeepsTo(0.005));
  Open({.code = {.form = StateForm::kInt8}});
  EXPECT_FALSE(desk_->KeepsTo(0.05)) << "nobody knows what it loses";
}

TEST_F(CutDeskTest, APromptThatIsTooLongForACutIsSaidOnceAndOnlyOfACloudThatIsKnown) {
  Open({});
  desk_->SetFacts({.own_read_seconds = 1e-3, .cloud_read_seconds = 1e-4, .cloud_tokens = 32});
  EXPECT_FALSE(desk_->Plan(kMayLose));
  EXPECT_THAT(said_, IsEmpty());
  cloud_.OnHello({.cut_tokens = 32}, 1e-3);
  EXPECT_FALSE(desk_->Plan(kMayLose));
  EXPECT_FALSE(desk_->Plan(kMayLose));
  EXPECT_THAT(said_, ElementsAre(HasSubstr("prompts of more than 32 tokens are not cut")));
}

TEST_F(CutDeskTest, WhatWritingRowsTakesCountsAgainstACode) {
  Open({.by_link = {{kLayer, {kByInt8, kByInt4}}}});
  MeasureLink(1e5);
  const CutPlan plan = *desk_->Plan(kMayLose);
  EXPECT_TRUE(plan.lossy);
  EXPECT_EQ(plan.code, 1u) << "the shorter one";
  EXPECT_EQ(desk_->EncoderFor(plan, /*exact=*/false)->code().form, StateForm::kInt4);
  for (int i = 0; i < 20; ++i) desk_->OnEncoded(plan, {.rows = 16, .seconds = 16 * 0.01});
  EXPECT_EQ(desk_->Plan(kMayLose)->code, 0u);
  EXPECT_DOUBLE_EQ(desk_->State().counts.encode_seconds, 20 * 16 * 0.01);
}

TEST_F(CutDeskTest, AnEntropyCoderIsChosenByWhatItWasMeasuredAndThenSeenToSpare) {
  const StateCode coded{.form = StateForm::kInt4, .rans = true};
  const std::size_t width = ModelAccess::EngineOf(*model_).config().width;
  const auto plain = static_cast<double>(StateRowBytes(kByInt4.code, width, 0));
  Open({.by_link = {{kLayer, {kByInt4, {.code = coded, .row_bytes = 0.5 * plain}}}}});
  MeasureLink(1e5);
  const CutPlan plan = *desk_->Plan(kMayLose);
  EXPECT_EQ(plan.code, 1u);
  EXPECT_EQ(desk_->EncoderFor(plan, /*exact=*/false)->code(), coded);
  // Messages were longer than that, as long as without it, and no sooner written.
  for (int i = 0; i < 20; ++i) {
    desk_->OnEncoded(
        plan,
        {.rows = 16, .bytes = static_cast<std::size_t>(32 * plain), .rans = true, .seconds = 1e-9});
  }
  EXPECT_EQ(desk_->Plan(kMayLose)->code, 0u);
}

TEST_F(CutDeskTest, WithoutALimitOfLossACodeIsAlwaysTheOneThatWasAskedFor) {
  Open({.code = {.form = StateForm::kInt4}});
  MeasureLink(1e5);
  const std::optional<CutPlan> plan = desk_->Plan(kMayLose);
  EXPECT_FALSE(plan->lossy) << "nothing is chosen";
  EXPECT_LT(plan->seconds, desk_->Plan(kMustNot)->seconds) << "by as many bytes as cross";
  EXPECT_EQ(desk_->EncoderFor(*plan, /*exact=*/false)->code().form, StateForm::kInt4);
}

}  // namespace
}  // namespace troupe
