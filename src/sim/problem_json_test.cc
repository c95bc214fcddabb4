#include "sim/problem_json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "placement/placer.h"
#include "placement/problems_for_test.h"
#include "testing/test_seed.h"

namespace troupe {
namespace {

using ::testing::HasSubstr;

constexpr std::string_view kProblem = R"({
  "format": "troupe placement problem", "version": 1,
  "model": {"layers": 2, "experts": 2, "experts_per_token": 1, "expert_bytes": "1KiB"},
  "servers": [
    {"name": "lab", "devices": [{"memory": 3072, "load_bytes_per_s": 1e9}],
     "activations": [[5, 1], [2, 2]]},
    {"name": "ward", "devices": [{"count": 2, "memory": "1KiB", "speed": 2, "load_bytes_per_s": 1e9}],
     "activations": [[0, 1.5], [2, 2]]}],
  "links": {"latency_s": 0.001, "bytes_per_s": 62.5e6,
            "pairs": [{"from": "ward", "to": 0, "latency_s": 0.002, "bytes_per_s": 1e6}]}
})";

std::string Replaced(std::string_view from, std::string_view to) {
  std::string text(kProblem);
  const std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos);
  return text.replace(at, from.size(), to);
}

void ExpectRefused(std::string_view from, std::string_view to, const char* words) {
  const Result<PlacementProblem> problem = ParseProblem("p.json", Replaced(from, to));
  ASSERT_FALSE(problem.ok());
  EXPECT_THAT(problem.status().message(), HasSubstr("p.json: "));
  EXPECT_THAT(problem.status().message(), HasSubstr(words));
}

TEST(ProblemJsonTest, ReadsWhatPeopleWrite) {
  const PlacementProblem problem = ParseProblem("p.json", kProblem).value();
  EXPECT_EQ(problem.experts.equal_bytes(), 1024u);
  EXPECT_EQ(problem.servers[1].devices.size(), 2u);
  EXPECT_EQ(problem.servers[1].devices[1].speed, 2);
  EXPECT_EQ(problem.servers[1].activations[1], 1.5);
  EXPECT_EQ(problem.links.Between(1, 0).latency_seconds, 0.002);
  EXPECT_EQ(problem.links.Between(0, 1).latency_seconds, 0.001);
}

TEST(ProblemJsonTest, RandomProblemsAndPlacementsComeBackAsTheyWere) {
  Rng rng(TestSeed());
  for (int i = 0; i < 100; ++i) {
    const PlacementProblem problem = RandomProblem(rng, {.equal_sizes = i % 2 == 0});
    const Result<PlacementProblem> again = ParseProblem("p", ToJson(problem).Dump());
    ASSERT_TRUE(again.ok()) << again.status().message();
    ASSERT_EQ(*again, problem);
    const Result<Placement> placement = MakeDanceMoe()->Place(problem);
    if (!placement.ok()) continue;
    const std::string text = ToJson(problem, *placement).Dump();
    ASSERT_EQ(ParsePlacement("q", text, problem).value(), *placement);
  }
}

TEST(ProblemJsonTest, ErrorsSayWhereAndWhatWasExpected) {
  ExpectRefused("\"layers\": 2", "\"layers\": -2", "model.layers: -2, expected a whole number");
  ExpectRefused("\"layers\": 2", "\"layers\": 3", "servers[0].activations");
  ExpectRefused("\"memory\": 3072", "\"memory\": \"three\"",
                "servers[0].devices[0].memory: \"three\"");
  ExpectRefused("[[5, 1]", "[[5, 1, 1]", "servers[0].activations[0]: [5,1,1], expected 2");
  ExpectRefused("[[5, 1]", "[[5, -1]", "an activation frequency of -1");
  ExpectRefused("\"from\": \"ward\"", "\"from\": \"yard\"", "links.pairs[0].from: \"yard\"");
  ExpectRefused("\"to\": 0", "\"to\": 2",
                "links.pairs[0].to: 2, expected a whole number from 0 to 1");
  ExpectRefused("\"memory\": 3072", "\"memory\": 1024", "no placement covers all experts");
  ExpectRefused("\"speed\": 2", "\"sped\": 2", "'sped' is no key here");
  ExpectRefused("\"latency_s\": 0.001, ", "", "links: no 'latency_s'");
  ExpectRefused("\"format\": ", "\"format\" ", "not JSON");
  ExpectRefused("placement problem", "placement", "expected \"troupe placement problem\"");
  ExpectRefused("\"troupe placement problem\"", "5", "format: 5, expected a text");
  const std::string brackets(100'000, '[');
  ExpectRefused("\"troupe placement problem\"", brackets, "nested more than 64 deep");
  // Numbers that would take all memory before anything is known to be wrong.
  ExpectRefused("\"layers\": 2, \"experts\": 2", "\"layers\": 4096, \"experts\": 65535",
                "at most 4194304 layers times experts");
  ExpectRefused("{\"count\": 2, \"memory\"", "{\"count\": 4097, \"memory\"",
                "servers[1].devices[0].count: 4097");
  ExpectRefused("{\"name\": \"ward\", \"devices\": [{\"count\": 2,",
                "{\"name\": \"ward\", \"count\": 99999, \"devices\": [{\"count\": 4096,",
                "at most 1048576 devices");
}

TEST(ProblemJsonTest, APlacementOfAnotherProblemIsRefused) {
  const PlacementProblem problem = ParseProblem("p.json", kProblem).value();
  const auto message = [&](std::string_view servers) {
    const std::string text =
        fmt::format(R"({{"format": "troupe placement", "version": 1, "servers": {}}})", servers);
    const Result<Placement> placement = ParsePlacement("q.json", text, problem);
    return placement.ok() ? "" : placement.status().message();
  };
  EXPECT_EQ(message(R"([{"devices": [[[0, 1], [0]]]}, {"devices": [[[], [1]], [[], []]]}])"), "");
  EXPECT_THAT(message(R"([{"devices": [[[0, 1], [0]]]}])"), HasSubstr("on 1 servers"));
  EXPECT_THAT(message(R"([{"devices": [[[0, 2], [0]]]}])"), HasSubstr("expected a whole number"));
  EXPECT_THAT(message(R"([{"devices": [[[0, 1], [0]]]}, {"devices": [[[], []], [[], []]]}])"),
              HasSubstr("q.json: layer 1, expert 1 lies on no device"));
}

}  // namespace
}  // namespace troupe
