#include "troupe/split_flags.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <map>

#include "testing/temp_folder.h"
#include "troupe/fitted_cuts.h"
#include "troupe/serve_flags.h"
#include "troupe/split_metrics.h"

namespace troupe {
namespace {

using testing::HasSubstr;

std::string SplitMistakeIn(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), "m.gguf");
  auto flags = ServeFlags::Read(arguments);
  return (flags.ok() ? (*flags)->CheckUsage() : flags.status()).message();
}

TEST(SplitFlags, AServerIsAloneUnlessItIsToldOtherwise) {
  const auto flags = ServeFlags::Read({"m.gguf"}).value();
  EXPECT_FALSE(flags->split().any());
  EXPECT_TRUE(ServeFlags::Read({"m.gguf", "--for-ends"}).value()->split().for_ends());
}

TEST(SplitFlags, SayWhereTheCloudIsAndWhoAsksIt) {
  const TempFolder folder;
  const std::string path = (folder.path() / "key").string();
  std::ofstream(path) << "secret\n";
  const auto flags = ServeFlags::Read({"m.gguf", "--cloud", "https://strong:8443", "--cloud-key",
                                       path, "--place", "route-aware", "--place-beta", "3",
                                       "--place-end-s", "5", "--cloud-insecure"})
                         .value();
  ASSERT_TRUE(flags->CheckUsage().ok());
  const EndOptions options = flags->split().Read().value();
  EXPECT_EQ(options.cloud.url.ToString(), "https://strong:8443");
  EXPECT_EQ(options.cloud.key, "secret");
  EXPECT_EQ(options.rule, "route-aware");
  EXPECT_EQ(options.route_aware.beta, 3);
  EXPECT_EQ(options.route_aware.end_seconds, 5);
  EXPECT_TRUE(options.any_certificate);
}

TEST(SplitFlags, AnswersMayHaveDraftsWhereARuleChoosesThem) {
  const auto may = [](std::vector<std::string> more) {
    more.insert(more.begin(), {"m.gguf", "--cloud", "http://x"});
    return ServeFlags::Read(more).value()->split().may_draft();
  };
  EXPECT_TRUE(may({}));
  EXPECT_TRUE(may({"--place", "drafts"}));
  EXPECT_FALSE(may({"--place", "cloud"}));
  EXPECT_FALSE(ServeFlags::Read({"m.gguf"}).value()->split().may_draft());
}

TEST(SplitFlags, TheCloudMayBeAskedUnlessThePlaceIsTheEnd) {
  const auto may = [](std::vector<std::string> more) {
    more.insert(more.begin(), {"m.gguf", "--cloud", "http://x"});
    return ServeFlags::Read(more).value()->split().may_ask_cloud();
  };
  EXPECT_TRUE(may({}));
  for (const char* place : {"cloud", "drafts", "layers:3", "route-aware"}) {
    EXPECT_TRUE(may({"--place", place})) << place;
  }
  EXPECT_FALSE(may({"--place", "end"}));
  EXPECT_FALSE(ServeFlags::Read({"m.gguf"}).value()->split().may_ask_cloud());
}

TEST(SplitFlags, SayHowPromptsAreCut) {
  const auto read = [](std::vector<std::string> more) {
    more.insert(more.begin(), {"m.gguf", "--cloud", "http://x"});
    const auto flags = ServeFlags::Read(more).value();
    EXPECT_TRUE(flags->CheckUsage().ok());
    return flags->split().Read().value();
  };
  const EndOptions layers = read({"--place", "layers:12", "--cut-chunk", "64", "--cut-code",
                                  "128:int8", "--cut-tokens", "2000"});
  EXPECT_EQ(layers.rule, "layers");
  EXPECT_EQ(layers.cuts.layer, 12u);
  EXPECT_EQ(layers.cuts.chunk, 64u);
  EXPECT_EQ(layers.cuts.code, (StateCode{.rank = 128, .form = StateForm::kInt8}));
  EXPECT_EQ(layers.cuts.tokens, 2000u);
  EXPECT_EQ(read({"--place", "layers:12", "--cut-code", "64:int4-rans"}).cuts.code,
            (StateCode{.rank = 64, .form = StateForm::kInt4, .rans = true}));
  const EndOptions usual = read({});
  EXPECT_EQ(usual.cuts.tokens, 1024u);
  EXPECT_TRUE(usual.cuts.code.exact());
  EXPECT_FALSE(usual.cuts.layer);
  EXPECT_EQ(read({"--place", "cloud"}).cuts.tokens, 0u);
  const auto cloud = ServeFlags::Read({"m.gguf", "--for-ends", "--cut-tokens", "0"}).value();
  EXPECT_TRUE(cloud->CheckUsage().ok());
  EXPECT_EQ(cloud->split().cut_tokens_of_cloud(), 0u);
  EXPECT_EQ(ServeFlags::Read({"m.gguf", "--for-ends"}).value()->split().cut_tokens_of_cloud(),
            4096u);
}

TEST(SplitFlags, ALimitOfLossPicksOfEachCutTheShortMeasuredCodesThatKeepToIt) {
  const auto flags = ServeFlags::Read({"m.gguf", "--cloud", "http://x", "--cut-loss", "1"}).value();
  EXPECT_TRUE(flags->CheckUsage().ok());
  EXPECT_TRUE(flags->split().reads_bases());
  EXPECT_EQ(flags->split().cut_loss(), 0.01);
  const StateCode int8{.form = StateForm::kInt8}, int4{.form = StateForm::kInt4};
  const auto cut = [&](std::uint32_t layer, double loss_of_int4) {
    PricedCut priced{.basis = PlainBasis(layer, 256)};
    priced.codes = {{.code = {}}, {.code = int8, .loss_most = 0.002}};
    priced.codes.push_back({.code = int4, .loss_most = loss_of_int4});
    return priced;
  };
  const std::vector<PricedCut> cuts = {cut(2, 0.012), cut(4, 0.008)};
  using Codes = std::map<std::uint32_t, std::vector<TriedCode>>;
  EXPECT_EQ(CodesWithin(cuts, 0.01), (Codes{{2, {{.code = int8, .row_bytes = 272}}},
                                            {4, {{.code = int4, .row_bytes = 144}}}}));
  EXPECT_EQ(CodesWithin(cuts, 0.001), Codes());
}

TEST(SplitFlags, AnswersBehindLossyCutsAreNotCalledExactAndALimitSaysHowMuchTheyLose) {
  const StateCode int8{.form = StateForm::kInt8};
  EXPECT_EQ(QualityBehind({.tokens = 96}).text, "exact");
  EXPECT_EQ(QualityBehind({.tokens = 0, .code = int8}).text, "exact") << "none is cut";
  const auto code = QualityBehind({.tokens = 96, .code = {.rank = 64, .form = StateForm::kInt8}});
  EXPECT_EQ(code.text, "cut prompts (64:int8)");
  const auto limit =
      QualityBehind({.tokens = 96, .by_link = {{3, {{.code = int8}}}}, .most_loss = 0.01});
  EXPECT_EQ(limit.text, "cut prompts (at most 1%)");
  EXPECT_EQ(limit.lossiness, Lossiness(LossLimit{0.01}));
  EXPECT_EQ(QualityBehind({.tokens = 96, .most_loss = 0.01}).text, "exact")
      << "no code keeps to it";
}

TEST(SplitFlags, MistakesAreToldInOneLine) {
  EXPECT_THAT(SplitMistakeIn({"--place", "cloud"}), HasSubstr("--place needs --cloud"));
  EXPECT_THAT(SplitMistakeIn({"--cloud-key", "f"}), HasSubstr("--cloud"));
  EXPECT_THAT(SplitMistakeIn({"--cloud", "ftp://x"}), HasSubstr("ftp"));
  EXPECT_THAT(SplitMistakeIn({"--cloud", "http://x", "--place", "best"}), HasSubstr("best"));
  EXPECT_THAT(SplitMistakeIn({"--cloud", "http://x", "--place", "layers"}), HasSubstr("layers:N"));
  EXPECT_THAT(SplitMistakeIn({"--cloud", "http://x", "--place", "layers:x"}),
              HasSubstr("expected layers:N"));
  EXPECT_THAT(SplitMistakeIn({"--cloud", "http://x", "--cut-code", "int7"}), HasSubstr("int8"));
  EXPECT_THAT(SplitMistakeIn({"--cloud", "http://x", "--cut-code", "floats-rans"}),
              HasSubstr("'floats-rans', expected"));
  EXPECT_THAT(SplitMistakeIn({"--cut-code", "int8"}), HasSubstr("--cut-code needs --cloud"));
  EXPECT_THAT(SplitMistakeIn({"--cut-loss", "1"}), HasSubstr("--cut-loss needs --cloud"));
  EXPECT_THAT(SplitMistakeIn({"--cloud", "http://x", "--cut-loss", "1", "--cut-code", "int8"}),
              HasSubstr("--cut-code"));
  EXPECT_THAT(SplitMistakeIn({"--cut-tokens", "9"}), HasSubstr("--cut-tokens needs"));
}

TEST(SplitFlags, WhatHasNoEffectAtThePlaceIsAMistake) {
  const auto mistake = [](std::vector<std::string> more) {
    more.insert(more.begin(), {"--cloud", "http://x"});
    return SplitMistakeIn(more);
  };
  const std::vector<std::vector<std::string>> of_cuts = {
      {"--cut-code", "int8"}, {"--cut-loss", "1"}, {"--cut-chunk", "64"}};
  for (std::vector<std::string> option : of_cuts) {
    for (const char* place : {"cloud", "end", "drafts", "route-aware"}) {
      std::vector<std::string> there = option;
      there.insert(there.end(), {"--place", place});
      EXPECT_THAT(mistake(there), HasSubstr(option[0] + " needs --place auto or layers:N"))
          << place;
    }
    EXPECT_EQ(mistake(option), "");
    option.insert(option.end(), {"--place", "layers:3"});
    EXPECT_EQ(mistake(option), "");
    option.insert(option.end(), {"--cut-tokens", "0"});
    EXPECT_THAT(mistake(option), HasSubstr("--cut-tokens 0 cuts no prompt"));
  }
  EXPECT_THAT(mistake({"--cut-tokens", "0", "--cut-loss", "1"}),
              HasSubstr("--cut-loss needs tokens"));
  EXPECT_EQ(mistake({"--cut-tokens", "0"}), "");
  for (const char* option : {"--place-beta", "--place-end-s"}) {
    EXPECT_THAT(mistake({option, "3"}), HasSubstr("needs --place route-aware"));
    EXPECT_EQ(mistake({option, "3", "--place", "route-aware"}), "");
  }
  EXPECT_EQ(mistake({"--place", "route-aware"}), "");
}

TEST(SplitMetrics, TellEachPlaceByItsName) {
  const EndState state{.cloud = CloudWatch::State::kThere,
                       .begun = {1, 2},
                       .flow = {.tokens = {3, 4}, .wrong = 6},
                       .predicted_drafts = {.answers = 7},
                       .end = PlaceCosts{.token_seconds = 0.5},
                       .cloud_costs = {},
                       .with_drafts = {},
                       .drafts = {.guessed = 9,
                                  .checked = 5,
                                  .right = 4,
                                  .learned = 2,
                                  .expected_seconds = 1.5,
                                  .seconds = 4.5},
                       .draft_factor = 3};
  std::string all;
  for (const ExtraMetric& metric : MetricsOf(state)) {
    all += metric.name;
    for (const auto& [key, value] : metric.labels) all += " " + key + "=" + value;
    all += fmt::format(" {}\n", metric.value);
  }
  EXPECT_THAT(all, HasSubstr("troupe_split_cloud 1\n"));
  EXPECT_THAT(all, HasSubstr("troupe_split_answers_total place=cloud 2\n"));
  EXPECT_THAT(all, HasSubstr("troupe_split_tokens_total place=end 3\n"));
  EXPECT_THAT(all, HasSubstr("troupe_split_wrong_total 6\n"));
  EXPECT_THAT(all, HasSubstr("troupe_split_draft_tokens_total state=guessed 9\n"));
  EXPECT_THAT(all, HasSubstr("troupe_split_draft_tokens_total state=right 4\n"));
  EXPECT_THAT(all, HasSubstr("troupe_split_draft_learned_total 2\n"));
  EXPECT_THAT(all, HasSubstr("troupe_split_draft_expected_seconds_total 1.5\n"));
  EXPECT_THAT(all, HasSubstr("troupe_split_draft_took_seconds_total 4.5\n"));
  EXPECT_THAT(all, HasSubstr("troupe_split_draft_factor 3\n"));
  EXPECT_THAT(all, HasSubstr("troupe_split_predicted_answers_total way=drafts 7\n"));
  EXPECT_THAT(all, HasSubstr("troupe_split_token_seconds place=end 0.5\n"));
  EXPECT_EQ(all.find("troupe_split_token_seconds place=cloud"), all.npos);
}

TEST(SplitMetrics, TellOfCutPromptsHowLongEachLaneWasAtWork) {
  EndState state;
  CutState& cuts = state.cuts.emplace();
  cuts.seconds = 4;
  cuts.counts.begun = 3;
  cuts.counts.answered = 2;
  cuts.counts.rows = 100;
  cuts.counts.lossy_rows = 30;
  cuts.counts.bytes_spared = 1234;
  cuts.counts.rows_before = {{3, 100}};
  cuts.counts.went_on = 1;
  cuts.counts.keys_bytes = 4096;
  cuts.counts.end.Add(0, 1'000'000'000);
  std::string all;
  for (const ExtraMetric& metric : MetricsOf(state)) {
    all += metric.name;
    for (const auto& [key, value] : metric.labels) all += " " + key + "=" + value;
    all += fmt::format(" {}\n", metric.value);
  }
  EXPECT_THAT(all, HasSubstr("troupe_split_cut_prompts_total state=answered 2\n"));
  EXPECT_THAT(all, HasSubstr("troupe_split_cut_rows_total code=exact 70\n"));
  EXPECT_THAT(all, HasSubstr("troupe_split_cut_rows_total code=lossy 30\n"));
  EXPECT_THAT(all, HasSubstr("troupe_split_cut_rows_before_total layer=3 100\n"));
  EXPECT_THAT(all, HasSubstr("troupe_split_cut_answers_total 1\n"));
  EXPECT_THAT(all, HasSubstr("troupe_split_cut_keys_bytes_total 4096\n"));
  EXPECT_THAT(all, HasSubstr("troupe_split_cut_bytes_spared_total 1234\n"));
  EXPECT_THAT(all, HasSubstr("troupe_split_cut_lane_seconds_total lane=end state=busy 1\n"));
  EXPECT_THAT(all, HasSubstr("troupe_split_cut_lane_seconds_total lane=end state=idle 3\n"));
}

TEST(SplitMetrics, TellOfACloudWhatItHasRunOfCutPrompts) {
  PartCounters counters;
  counters.prompts = 3;
  std::map<std::string, double> values;
  for (const ExtraMetric& metric : MetricsOf(counters, {.kept = 2, .no_room = 1, .given_up = 3})) {
    const std::string label = metric.labels.empty() ? "" : " " + metric.labels.front().second;
    values[std::string(metric.name) + label] = static_cast<double>(metric.value);
  }
  EXPECT_EQ(values.at("troupe_cloud_cut_prompts_total"), 3);
  EXPECT_EQ(values.at("troupe_cloud_cut_answers_total kept"), 2);
  EXPECT_EQ(values.at("troupe_cloud_cut_answers_total no_room"), 1);
  EXPECT_EQ(values.at("troupe_cloud_cut_answers_total given_up"), 3);
}

}  // namespace
}  // namespace troupe
