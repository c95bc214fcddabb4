#include "lab/cut_calibration.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "io/text_file.h"

namespace troupe {
namespace {

using testing::HasSubstr;

constexpr const char* kTrained = TROUPE_SOURCE_DIR "/models/tiny-qwen2moe-q8_0.gguf";

class CalibratingACut : public testing::Test {
 protected:
  CalibratingACut() {
    options_.window = 64;
    options_.rank_shares = {0.25, 0.75};
    options_.begin = 1;
    engine_ =
        Engine::Open(kTrained,
                     {.threads = 2, .context = 64, .sequences = CutCalibrationSequences(options_)})
            .value();
    const std::string text =
        ReadWholeText(TROUPE_SOURCE_DIR "/CONTRIBUTING.md", 1_MiB).value().substr(0, 4000);
    text_ = engine_->tokenizer().Encode(text, {.add_special = false}).value();
  }
  Result<PricedCut> Calibrate(std::uint32_t layer) {
    const std::span<const TokenId> text(text_);
    return CalibrateCut(*engine_, layer, text.first(700), text.subspan(700, 200), options_);
  }
  static const CodePrice& PriceOf(const PricedCut& cut, std::uint32_t rank, StateForm form) {
    const StateCode code{.rank = rank, .form = form};
    const auto found = std::ranges::find(cut.codes, code, &CodePrice::code);
    TROUPE_CHECK(found != cut.codes.end());
    return *found;
  }

  CutCalibrationOptions options_;
  std::unique_ptr<Engine> engine_;
  std::vector<TokenId> text_;
};

TEST_F(CalibratingACut, MoreBytesLoseLess) {
  const auto cut = Calibrate(4);
  ASSERT_TRUE(cut.ok()) << cut.status().message();
  ASSERT_TRUE(CheckBasis(cut->basis).ok());
  EXPECT_EQ(cut->basis.layer, 4u);
  EXPECT_EQ(cut->basis.ranks(), 96u);
  EXPECT_EQ(cut->fitted_on, 700u);
  EXPECT_EQ(cut->measured_on, 200u);
  ASSERT_EQ(cut->codes.size(), 7u);
  const CodePrice& exact = PriceOf(*cut, 0, StateForm::kFloat);
  EXPECT_EQ(exact, (CodePrice{.code = {}}));  // it loses nothing at all
  const CodePrice& all8 = PriceOf(*cut, 0, StateForm::kInt8);
  const CodePrice& all4 = PriceOf(*cut, 0, StateForm::kInt4);
  const CodePrice& most = PriceOf(*cut, 96, StateForm::kInt8);
  const CodePrice& least = PriceOf(*cut, 32, StateForm::kInt8);
  EXPECT_GT(all8.kl, 0);
  EXPECT_LT(all8.kl, all4.kl);
  EXPECT_LT(all8.error, all4.error);
  EXPECT_LT(most.kl, least.kl);
  EXPECT_LT(most.error, least.error);
  EXPECT_LT(all8.error, most.error);
  EXPECT_LE(least.same_top, 1);
  // What codes say is fewer bits than they take.
  for (const CodePrice& price : cut->codes) {
    if (price.code.form == StateForm::kFloat) continue;
    const double all_bits = price.code.form == StateForm::kInt8 ? 8 : 4;
    EXPECT_GT(price.bits, all_bits / 2);
    EXPECT_LT(price.bits, all_bits);
    EXPECT_LE(price.rans_bytes, static_cast<double>(cut->RowBytes(price.code)));
  }
  EXPECT_LT(all4.rans_bytes, static_cast<double>(cut->RowBytes(all4.code)));
  // Half a step of 127 of the largest in each group: far from a hundredth of the squares.
  EXPECT_LT(all8.error, 1e-3);
  EXPECT_EQ(ChooseCode(*cut, 0), StateCode{});
}

TEST_F(CalibratingACut, TheFitGoesByTheOutputAsMuchAsAskedFor) {
  options_.task_weight = 0;
  const PricedCut by_states = Calibrate(4).value();
  options_.task_weight = 1;
  const PricedCut by_loss = Calibrate(4).value();
  EXPECT_NE(by_states.basis.directions, by_loss.basis.directions);
  // States lose the least where they are fitted by that alone.
  EXPECT_LE(PriceOf(by_states, 32, StateForm::kInt8).error,
            PriceOf(by_loss, 32, StateForm::kInt8).error * 1.02);
}

TEST_F(CalibratingACut, TheSameTextGivesTheSameCut) {
  EXPECT_EQ(Calibrate(2).value(), Calibrate(2).value());
}

TEST_F(CalibratingACut, WhatCannotBeCutOrMeasuredIsRefused) {
  EXPECT_THAT(Calibrate(8).status().message(), HasSubstr("a cut before layer 8, 1 to 7"));
  EXPECT_THAT(
      CalibrateCut(*engine_, 1, std::span(text_).first(100), std::span(text_).last(50), options_)
          .status()
          .message(),
      HasSubstr("at least 128 expected"));
  EXPECT_THAT(
      CalibrateCut(*engine_, 1, std::span(text_).first(200), std::span(text_).last(1), options_)
          .status()
          .message(),
      HasSubstr("at least 2 expected"));
}

}  // namespace
}  // namespace troupe
