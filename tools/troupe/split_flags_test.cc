#include "troupe/split_flags.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "testing/temp_folder.h"
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

TEST(SplitFlags, MistakesAreToldInOneLine) {
  EXPECT_THAT(SplitMistakeIn({"--place", "cloud"}), HasSubstr("--place needs --cloud"));
  EXPECT_THAT(SplitMistakeIn({"--cloud-key", "f"}), HasSubstr("--cloud"));
  EXPECT_THAT(SplitMistakeIn({"--cloud", "ftp://x"}), HasSubstr("ftp"));
  EXPECT_THAT(SplitMistakeIn({"--cloud", "http://x", "--place", "best"}), HasSubstr("best"));
}

TEST(SplitMetrics, TellEachPlaceByItsName) {
  const EndState state{.cloud = CloudWatch::State::kThere,
                       .begun = {1, 2},
                       .flow = {.tokens = {3, 4}},
                       .end = PlaceCosts{.token_seconds = 0.5},
                       .cloud_costs = {},
                       .with_drafts = {},
                       .drafts = {.guessed = 9, .checked = 5, .right = 4}};
  std::string all;
  for (const ExtraMetric& metric : MetricsOf(state)) {
    all += metric.name;
    for (const auto& [key, value] : metric.labels) all += " " + key + "=" + value;
    all += fmt::format(" {}\n", metric.value);
  }
  EXPECT_THAT(all, HasSubstr("troupe_split_cloud 1\n"));
  EXPECT_THAT(all, HasSubstr("troupe_split_answers_total place=cloud 2\n"));
  EXPECT_THAT(all, HasSubstr("troupe_split_tokens_total place=end 3\n"));
  EXPECT_THAT(all, HasSubstr("troupe_split_draft_tokens_total state=guessed 9\n"));
  EXPECT_THAT(all, HasSubstr("troupe_split_draft_tokens_total state=right 4\n"));
  EXPECT_THAT(all, HasSubstr("troupe_split_token_seconds place=end 0.5\n"));
  EXPECT_EQ(all.find("troupe_split_token_seconds place=cloud"), all.npos);
}

}  // namespace
}  // namespace troupe
