#include "split/codec/cut_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "split/codec/random_states_for_test.h"
#include "testing/edited_text.h"
#include "testing/test_seed.h"

namespace troupe {
namespace {

using testing::HasSubstr;

PricedCut RandomCut(std::uint32_t layer, Rng& rng) {
  PricedCut cut{.basis = *RandomBasis(20, 1 + rng.Below(15), rng, {3, 11}),
                .text = "a.txt",
                .fitted_on = rng.Below(10'000),
                .measured_on = rng.Below(10'000),
                .codes = {}};
  cut.basis.layer = layer;
  for (int i = 0; i < 6; ++i) {
    CodePrice price{.code = {.rank = static_cast<std::uint32_t>(rng.Below(cut.basis.ranks() + 1)),
                             .form = static_cast<StateForm>(rng.Below(3))},
                    .error = rng.Uniform(),
                    .kl = rng.Uniform() / 10,
                    .loss = rng.Uniform() / 10 - 0.01,
                    .same_top = rng.Uniform()};
    price.kl_most = price.kl * 1.5;
    price.loss_most = price.loss + 0.01;
    price.bits = rng.Uniform() * 8;
    price.rans_bytes = rng.Uniform() * static_cast<double>(cut.RowBytes(price.code));
    cut.codes.push_back(price);
  }
  return cut;
}

CutFile RandomFile(Rng& rng) {
  return {.fingerprint = "0123abcd", .cuts = {RandomCut(2, rng), RandomCut(5, rng)}};
}

TEST(CutFile, IsReadAsItWasWritten) {
  Rng rng(TestSeed());
  for (int round = 0; round < 50; ++round) {
    const CutFile file = RandomFile(rng);
    const auto read = DecodeCutFile("m.cuts.json", EncodeCutFile(file));
    ASSERT_TRUE(read.ok()) << read.status().message();
    ASSERT_EQ(*read, file);
  }
}

TEST(CutFile, SaysWhereItIsWrong) {
  Rng rng(TestSeed());
  CutFile file = RandomFile(rng);
  file.cuts[0].codes[0] = {.code = {.rank = 1, .form = StateForm::kInt8}, .kl = 0.5, .kl_most = 1};
  const std::string good = EncodeCutFile(file);
  const auto message = [&](std::string_view from, std::string_view to) {
    return DecodeCutFile("m.cuts.json", Edited(good, from, to)).status().message();
  };
  EXPECT_THAT(message("troupe cuts", "troupe cats"), HasSubstr("m.cuts.json"));
  EXPECT_THAT(message("\"version\":1", "\"version\":2"), HasSubstr("version"));
  EXPECT_THAT(message("\"layer\":5", "\"layer\":2"), HasSubstr("layers that rise"));
  EXPECT_THAT(message("\"layer\":2", "\"layer\":0"), HasSubstr("cuts[0].layer"));
  EXPECT_THAT(message("[3,11]", "[3,20]"), HasSubstr("channel 20 kept apart"));
  EXPECT_THAT(message("\"mean\":\"", "\"mean\":\"*"), HasSubstr("floats as base64"));
  EXPECT_THAT(message("\"rank\":1,", "\"rank\":19,"), HasSubstr("larger than the 18 channels"));
  EXPECT_THAT(message("int8", "int7"), HasSubstr("floats, int8 or int4"));
  EXPECT_THAT(message("\"kl_most\":1.0", "\"kl_most\":0.25"), HasSubstr("kl_most"));
}

TEST(CutFile, TheCodeOfTheFewestBytesWithinTheLimitIsChosen) {
  Rng rng(TestSeed());
  for (int round = 0; round < 300; ++round) {
    const PricedCut cut = RandomCut(1, rng);
    const double limit = rng.Uniform() / 5;
    const StateCode chosen = ChooseCode(cut, limit);
    const std::size_t bytes = cut.RowBytes(chosen);
    bool is_measured = chosen.exact();
    for (const CodePrice& price : cut.codes) {
      if (price.LossBound() > limit) continue;
      EXPECT_GE(cut.RowBytes(price.code), bytes);
      is_measured = is_measured || price.code == chosen;
    }
    EXPECT_TRUE(is_measured);
  }
  EXPECT_EQ(ChooseCode(RandomCut(1, rng), -1), StateCode{});
}

TEST(CutFile, WorthATryAreTheShortestCodeAndTheShortestWithoutDirections) {
  PricedCut cut{.basis = PlainBasis(1, 256)};
  const StateCode int8{.form = StateForm::kInt8}, int4{.form = StateForm::kInt4},
      half{.rank = 64, .form = StateForm::kInt8}, some{.rank = 200, .form = StateForm::kInt8};
  cut.codes = {{.code = {}},
               {.code = int8, .loss_most = 0.002},
               {.code = int4, .loss_most = 0.02},
               {.code = some, .loss_most = 0.01},
               {.code = half, .loss_most = 0.05}};
  const auto worth = [&cut](double limit) {
    std::vector<StateCode> codes;
    for (const TriedCode& tried : CodesWorthATry(cut, limit)) codes.push_back(tried.code);
    return codes;
  };
  EXPECT_THAT(worth(0.001), testing::IsEmpty());
  EXPECT_THAT(worth(0.005), testing::ElementsAre(int8));
  EXPECT_THAT(worth(0.01), testing::ElementsAre(int8, some));
  EXPECT_THAT(worth(0.02), testing::ElementsAre(int4)) << "shorter than rank 200";
  EXPECT_THAT(worth(0.05), testing::ElementsAre(int4, half));
}

TEST(CutFile, AnEntropyCoderIsWorthATryWhereItSparesATenth) {
  PricedCut cut{.basis = PlainBasis(1, 256)};
  const StateCode int8{.form = StateForm::kInt8}, int4{.form = StateForm::kInt4},
      coded{.form = StateForm::kInt4, .rans = true};
  cut.codes = {{.code = int8, .loss_most = 0.002, .rans_bytes = 0.91 * 272},
               {.code = int4, .loss_most = 0.02, .rans_bytes = 0.89 * 144}};
  EXPECT_THAT(CodesWorthATry(cut, 0.01),
              testing::ElementsAre(TriedCode{.code = int8, .row_bytes = 272}));
  EXPECT_THAT(CodesWorthATry(cut, 0.02),
              testing::ElementsAre(TriedCode{.code = int4, .row_bytes = 144},
                                   TriedCode{.code = coded, .row_bytes = 0.89 * 144}));
}

TEST(CutFile, OfBeforeThereWasAnEntropyCoderIsReadAsNotMeasured) {
  CutFile file{.fingerprint = "0123abcd", .cuts = {{.basis = PlainBasis(1, 256)}}};
  file.cuts[0].codes = {{.code = {.form = StateForm::kInt4}, .bits = 3.5, .rans_bytes = 120}};
  std::string old = EncodeCutFile(file);
  old = Edited(old, "\"bits\"", "\"x\"");
  old = Edited(old, "\"rans_bytes\"", "\"y\"");
  const CodePrice read = DecodeCutFile("m.cuts.json", old)->cuts[0].codes[0];
  EXPECT_EQ(read.bits, 0);
  EXPECT_EQ(read.rans_bytes, 0);
}

TEST(CutFile, ALossIsTheWorseOfBothMeasures) {
  EXPECT_DOUBLE_EQ((CodePrice{.kl_most = 0.02, .loss_most = 0.01}).LossBound(), std::expm1(0.02));
  EXPECT_DOUBLE_EQ((CodePrice{.kl_most = 0.02, .loss_most = 0.05}).LossBound(), 0.05);
}

TEST(CutFile, CutsOfTheSameModelStayBesideNewOnes) {
  Rng rng(TestSeed());
  const CutFile before = RandomFile(rng);
  const CutFile now{.fingerprint = before.fingerprint,
                    .cuts = {RandomCut(3, rng), RandomCut(5, rng)}};
  const CutFile both = WithCutsOf(before, now);
  ASSERT_EQ(both.cuts.size(), 3u);
  EXPECT_EQ(both.cuts[0], before.cuts[0]);
  EXPECT_EQ(both.cuts[1], now.cuts[0]);
  EXPECT_EQ(both.cuts[2], now.cuts[1]);
  CutFile other = before;
  other.fingerprint = "other";
  EXPECT_EQ(WithCutsOf(other, now), now);
}

}  // namespace
}  // namespace troupe
