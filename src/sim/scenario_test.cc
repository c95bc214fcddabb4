#include "sim/scenario.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>

#include "io/read_whole.h"
#include "placement/remote_calls.h"
#include "sim/trace_file.h"
#include "testing/test_seed.h"

namespace troupe {
namespace {

using ::testing::HasSubstr;

const std::string kData = TROUPE_SOURCE_DIR "/tests/data/routing/";

TEST(TraceFileTest, ReadsRecordedRouting) {
  const RoutingTrace trace = ReadRoutingTrace(kData + "intent.meta.json").value();
  EXPECT_EQ(trace.layers, 4u);
  EXPECT_EQ(trace.experts, 64u);
  EXPECT_EQ(trace.top_k, 6u);
  EXPECT_EQ(trace.tokens, 64u + 63 + 63 + 73);
  EXPECT_EQ(trace.sequence_starts, (std::vector<std::uint32_t>{0, 64, 127, 190}));
  EXPECT_EQ(trace.SequenceLength(3), 73u);
  double sum = 0;
  for (const double f : ActivationsPerToken(trace)) sum += f;
  EXPECT_NEAR(sum, 4 * 6, 1e-9);
}

TEST(TraceFileTest, ReadsExpertCounts) {
  const auto counts =
      ReadExpertCounts(kData + "expert_counts.csv.zst", "Mixtral-8x7B-v0.1", "international_law")
          .value();
  ASSERT_EQ(counts.size(), 2u);
  ASSERT_EQ(counts[0].size(), 8u);
  double sum = 0;
  for (const double count : counts[1]) sum += count;
  EXPECT_EQ(sum, 3840);
  const auto none = ReadExpertCounts(kData + "expert_counts.csv.zst", "Mixtral", "law");
  EXPECT_THAT(none.status().message(), HasSubstr("no row of model 'Mixtral', task 'law'"));
}

TEST(TraceFileTest, DrawnTokensFollowTheCounts) {
  const auto counts =
      ReadExpertCounts(kData + "expert_counts.csv.zst", "Mixtral-8x7B-v0.1", "machine_learning")
          .value();
  Rng rng(TestSeed());
  const RoutingTrace trace = DrawTrace(counts, 2, 100, 200, rng);
  ASSERT_TRUE(Validate(trace).ok());
  const std::vector<double> drawn = ActivationsPerToken(trace);
  for (std::uint32_t l = 0; l < 2; ++l) {
    double sum = 0;
    for (const double count : counts[l]) sum += count;
    for (std::uint32_t e = 0; e < 8; ++e) {
      // Two draws without putting back even out a little; never by more than this.
      EXPECT_NEAR(drawn[l * 8 + e], 2 * counts[l][e] / sum, 0.06) << "layer " << l << ", " << e;
    }
  }
}

TEST(TraceFileTest, ReadsBothKindsOfRequests) {
  const auto azure = ReadRequests(kData + "requests.csv").value();
  ASSERT_EQ(azure.size(), 12u);
  EXPECT_EQ(azure[0].seconds, 0);
  EXPECT_NEAR(azure[1].seconds, 4.314579, 1e-6);
  EXPECT_EQ(azure[1].input_tokens, 396u);
  EXPECT_EQ(azure[1].output_tokens, 109u);
  const auto mooncake = ReadRequests(kData + "requests.jsonl").value();
  ASSERT_EQ(mooncake.size(), 12u);
  EXPECT_EQ(mooncake[1].input_tokens, 7322u);
}

TEST(TraceFileTest, DamageIsSaidWithTheFile) {
  const std::string path = ::testing::TempDir() + "/damaged.zst";
  std::ofstream(path) << "no zstd";
  EXPECT_THAT(ReadWhole(path).status().message(), HasSubstr("damaged.zst: no intact zstd stream"));
  EXPECT_THAT(ReadWhole(path + "x").status().message(), HasSubstr("damaged.zstx"));
}

Scenario Load(const ScenarioOptions& options = {}) {
  Result<Scenario> scenario = LoadScenario(kData + "scenario.json", options);
  EXPECT_TRUE(scenario.ok()) << scenario.status().message();
  return *std::move(scenario);
}

TEST(ScenarioTest, DerivesWhatThePlacementHasToKnow) {
  const Scenario scenario = Load();
  EXPECT_EQ(scenario.setup.problem.SlotsOf(2), 210u);
  EXPECT_NEAR(scenario.setup.costs.expert.base, 1e-3, 1e-6);
  // Server C's prompts have 263 / 4 tokens in the mean and two more of their answers.
  const auto& passes = scenario.options.latency.passes[2];
  EXPECT_NEAR(passes[0].tokens, 65.75, 1e-9);
  EXPECT_NEAR(passes[1].per_second, 2.0 / 3, 1e-9);
  double sum = 0;
  for (const double f : scenario.setup.problem.Activations(2, 1)) sum += f;
  EXPECT_NEAR(sum, 6 * (65.75 + 2) / 3, 1e-9);
}

TEST(TraceFileTest, AHalfHasEverySecondSequenceWithWhatItChose) {
  const RoutingTrace trace = ReadRoutingTrace(kData + "intent.meta.json").value();
  std::vector<double> both(trace.layers * trace.experts);
  std::uint32_t tokens = 0;
  for (const std::size_t first : {0u, 1u}) {
    const RoutingTrace half = HalfOf(trace, first);
    ASSERT_TRUE(Validate(half).ok());
    ASSERT_EQ(half.sequence_starts.size(), 2u);
    tokens += half.tokens;
    for (std::size_t i = 0; i < 2; ++i) {
      ASSERT_EQ(half.SequenceLength(i), trace.SequenceLength(2 * i + first));
      for (std::uint32_t t = 0; t < half.SequenceLength(i); ++t) {
        EXPECT_TRUE(std::ranges::equal(half.Chosen(3, half.sequence_starts[i] + t),
                                       trace.Chosen(3, trace.sequence_starts[2 * i + first] + t)));
      }
    }
    const std::vector<double> of_half = ActivationsPerToken(half);
    for (std::size_t e = 0; e < both.size(); ++e) both[e] += of_half[e] * half.tokens;
  }
  EXPECT_EQ(tokens, trace.tokens);
  const std::vector<double> all = ActivationsPerToken(trace);
  for (std::size_t e = 0; e < both.size(); ++e) EXPECT_NEAR(both[e], all[e] * tokens, 1e-6);
}

TEST(ScenarioTest, HeldOutPromptsAreServedWithWhatTheOthersSayOfThem) {
  // The excerpts of the others have one prompt each.
  const Scenario scenario =
      Load({.set = {"/placement/held_out=true", "/traces/law/file=\"intent.meta.json\"",
                    "/traces/summary/file=\"intent.meta.json\""}});
  const Scenario all = Load();
  const RoutingTrace whole = ReadRoutingTrace(kData + "intent.meta.json").value();
  const RoutingTrace learned = HalfOf(whole, 0), served = HalfOf(whole, 1);
  // Of server C, whose users have this trace: nothing of what it serves is in its statistics.
  const std::uint32_t trace = scenario.setup.workload.users[2].phases.front().trace;
  EXPECT_EQ(scenario.setup.traces[trace].ids, served.ids);
  const double per_second = (static_cast<double>(learned.tokens) / 2 + 2) / 3;
  const std::vector<double> expected = ActivationsPerToken(learned);
  const auto& activations = scenario.setup.problem.servers[2].activations;
  ASSERT_EQ(activations.size(), expected.size());
  for (std::size_t e = 0; e < expected.size(); ++e) {
    EXPECT_NEAR(activations[e], expected[e] * per_second, 1e-9);
  }
  EXPECT_NE(activations, all.setup.problem.servers[2].activations);
}

TEST(ScenarioTest, TheControlOfHeldOutPromptsServesTheSameOnesAndLearnsFromThem) {
  const auto load = [](const char* held_out) {
    return Load({.set = {held_out, "/traces/law/file=\"intent.meta.json\"",
                         "/traces/summary/file=\"intent.meta.json\""}});
  };
  const Scenario control = load("/placement/held_out=\"served\"");
  const Scenario held = load("/placement/held_out=true");
  for (std::size_t i = 0; i < control.setup.traces.size(); ++i) {
    EXPECT_EQ(control.setup.traces[i].ids, held.setup.traces[i].ids);
  }
  const RoutingTrace served = HalfOf(ReadRoutingTrace(kData + "intent.meta.json").value(), 1);
  const double per_second = (static_cast<double>(served.tokens) / 2 + 2) / 3;
  const std::vector<double> expected = ActivationsPerToken(served);
  const auto& activations = control.setup.problem.servers[2].activations;
  ASSERT_EQ(activations.size(), expected.size());
  for (std::size_t e = 0; e < expected.size(); ++e) {
    EXPECT_NEAR(activations[e], expected[e] * per_second, 1e-9);
  }
  EXPECT_NE(activations, held.setup.problem.servers[2].activations);
}

TEST(ScenarioTest, RunsTheSameWayEveryTimeWithEachMethod) {
  for (const std::string_view method : PlacerNames()) {
    const auto record = [&] {
      Scenario scenario = Load({.method = std::string(method)});
      EXPECT_TRUE(PlaceExperts(scenario).ok());
      return ToJson(scenario, Simulate(scenario.setup).value());
    };
    const Json first = record();
    EXPECT_EQ(first.Dump(), record().Dump()) << method;
    EXPECT_EQ(*first.Find("prompts"), 600);
    EXPECT_EQ(*first.Find("method"), method);
  }
}

TEST(ScenarioTest, TheSimulatedShareOfLocalCallsIsThatOfEq2) {
  Scenario scenario =
      Load({.set = {"/migration=null", "/prompts=3000", "/users/2/phases/1/from_s=1e9"}});
  ASSERT_TRUE(PlaceExperts(scenario).ok());
  const double expected =
      CountRemoteCalls(scenario.setup.problem, scenario.setup.placement).LocalRatio();
  EXPECT_NEAR(Simulate(scenario.setup)->LocalRatio(), expected, 0.02);
}

TEST(ScenarioTest, AValueCanBeSetFromOutside) {
  const Scenario scenario = Load({.set = {"/servers/2/count=5", "/links/bytes_per_s=1e7"}});
  EXPECT_EQ(scenario.setup.problem.server_count(), 7u);
  EXPECT_EQ(scenario.setup.problem.servers[6].name, "C 4");
  EXPECT_EQ(scenario.setup.problem.links.usual.bytes_per_second, 1e7);
}

TEST(ScenarioTest, ServersMayBeLost) {
  const char* losses = R"(/losses={"mean_up_s": 30, "away_s": 20, "notice_s": 3})";
  Scenario scenario = Load({.set = {"/migration=null", losses}});
  EXPECT_EQ(scenario.setup.losses,
            (LossSetup{.mean_up_seconds = 30, .away_seconds = 20, .notice_seconds = 3}));
  ASSERT_TRUE(PlaceExperts(scenario).ok());
  const Json record = ToJson(scenario, Simulate(scenario.setup).value());
  EXPECT_EQ(*record.Find("prompts"), 600);
  EXPECT_GT(record.Find("losses")->AsCount(), 0u);
}

TEST(ScenarioTest, ServersMayHaveDisksOfTheirOwn) {
  const char* disks =
      R"(/disks=[{"bytes_per_s": 1e9, "latency_s": 1e-4, "free_slots": 7, "policy": "lru",
                  "reads_ahead": true}, {"bytes_per_s": 2e9}])";
  Scenario scenario = Load({.set = {"/migration=null", disks, "/servers/2/devices/0/count=1",
                                    "/servers/2/devices/0/memory=3468000000"}});
  const OwnDisk first{.bytes_per_second = 1e9,
                      .latency_seconds = 1e-4,
                      .free_slots = 7,
                      .policy = "lru",
                      .reads_ahead = true};
  ASSERT_EQ(scenario.setup.disks.size(), 3u);  // dealt to the servers in turn
  EXPECT_EQ(scenario.setup.disks[0], first);
  EXPECT_EQ(scenario.setup.disks[1], (OwnDisk{.bytes_per_second = 2e9}));
  EXPECT_EQ(scenario.setup.disks[2], first);
  ASSERT_TRUE(PlaceExperts(scenario).ok());
  const Json record = ToJson(scenario, Simulate(scenario.setup).value());
  EXPECT_GT(record.Find("servers")->items()[0].Find("disk")->Find("passes")->AsCount(), 0u);
}

TEST(ScenarioTest, WithoutDisksTheRecordSaysNothingOfThem) {
  Scenario scenario = Load({});
  ASSERT_TRUE(PlaceExperts(scenario).ok());
  EXPECT_TRUE(scenario.setup.disks.empty());
  const Json record = ToJson(scenario, Simulate(scenario.setup).value());
  EXPECT_EQ(record.Find("servers")->items()[0].Find("disk"), nullptr);
}

TEST(ScenarioTest, ErrorsSayWhereAndWhatWasExpected) {
  const auto message = [](const char* set) {
    const auto scenario = LoadScenario(kData + "scenario.json", {.set = {set}});
    return scenario.ok() ? "" : scenario.status().message();
  };
  EXPECT_THAT(message("/prompts=0"),
              HasSubstr("scenario.json: prompts: 0, expected a whole number"));
  EXPECT_THAT(
      message("/users/0/phases/0/trace=\"poetry\""),
      HasSubstr("users[0].phases[0].trace: \"poetry\", expected the name of one of 'traces'"));
  EXPECT_THAT(message("/traces/law/file=\"nowhere.json\""), HasSubstr("nowhere.json"));
  EXPECT_THAT(message("/links/sharing=\"all\""), HasSubstr("\"pair\", \"egress\" or \"both\""));
  EXPECT_THAT(message("/costs/expert/samples=[[1,-1]]"), HasSubstr("costs.expert.samples"));
  EXPECT_THAT(message("/model/layers=5"),
              HasSubstr("4 layers x 64 experts for a model with 5 x 64"));
  EXPECT_THAT(message("/users/0/phases=[]"),
              HasSubstr("users[0].phases: [], expected an array of phases"));
  EXPECT_THAT(message("/users/2/phases/1/from_s=0"), HasSubstr("users[2].phases[1]: "));
  EXPECT_THAT(message("/users/0/phases/0/from_s=5"), HasSubstr("the first from 0"));
  EXPECT_THAT(
      message("/users/0/phases/0/mean_interval_s=0"),
      HasSubstr("users[0].phases[0].mean_interval_s: 0, expected above 0 and at most 1000000"));
  EXPECT_THAT(message("/users/2/phases/0/mean_interval_s=1e9"),
              HasSubstr("users[2].phases[0].mean_interval_s: 1000000000.0"));
  EXPECT_THAT(message("/migration/loads=\"free\""),
              HasSubstr("migration.loads: \"free\", expected \"beside\", \"devices\" or"));
  EXPECT_THAT(message("/placement/held_out=1"),
              HasSubstr("placement.held_out: 1, expected true, false or \"served\""));
  EXPECT_THAT(message("/placement/held_out=\"sered\""),
              HasSubstr("placement.held_out: \"sered\", expected true, false or \"served\""));
  EXPECT_THAT(message("/disks=[]"), HasSubstr("disks: [], expected an array of disks"));
  EXPECT_THAT(message(R"(/disks=[{"bytes_per_s": 0}])"),
              HasSubstr("disks[0].bytes_per_s: 0, expected a positive number"));
  EXPECT_THAT(message(R"(/disks=[{"bytes_per_s": 1}, {"bytes_per_s": 1, "latency_s": -1}])"),
              HasSubstr("disks[1].latency_s: -1, expected zero or more"));
  EXPECT_THAT(message(R"(/disks=[{"bytes_per_s": 1, "free_slots": -1}])"),
              HasSubstr("disks[0].free_slots: -1, expected a whole number"));
  EXPECT_THAT(message(R"(/disks=[{"bytes_per_s": 1, "policy": "score"}])"),
              HasSubstr("disks[0].policy: \"score\", expected one of lru, lfu, arc, echo"));
  EXPECT_THAT(message(R"(/disks=[{"bytes_per_s": 1, "reads_ahead": 1}])"),
              HasSubstr("disks[0].reads_ahead: 1, expected true or false"));
  EXPECT_THAT(message(R"(/disks=[{"speed": 1}])"), HasSubstr("'speed' is no key here"));
  const char* recorded = R"(/users/0/recorded={"file": "requests.csv", )";
  EXPECT_THAT(message(fmt::format(R"({}"times": 0}})", recorded).c_str()),
              HasSubstr("recorded.times: 0, expected a positive number"));
  EXPECT_THAT(message(fmt::format(R"({}"most_input_tokens": -5}})", recorded).c_str()),
              HasSubstr("recorded.most_input_tokens: -5, expected a whole number from 1"));
  const std::string twelve = fmt::format("/users/0/recorded={}", R"({"file": "requests.csv"})");
  const auto crowded =
      LoadScenario(kData + "scenario.json", {.set = {twelve, "/servers/2/count=11"}});
  EXPECT_THAT(crowded.status().message(), HasSubstr("users[0].recorded.file: \"requests.csv\", "
                                                    "expected a request for each of 13 servers, "
                                                    "and it has 12"));
  EXPECT_THAT(
      message(R"(/traces/law={"counts": "expert_counts.csv.zst", "model": "Mixtral-8x7B-v0.1",
                 "task": "machine_learning", "sequences": 1048576, "tokens_each": 4096})"),
      HasSubstr("expected at most 268435456 choices"));
  EXPECT_THAT(message(("/note=" + std::string(70, '[') + std::string(70, ']')).c_str()),
              HasSubstr("the value is not JSON"));
  EXPECT_THAT(message("prompts=0"), HasSubstr("expected a pointer and a value"));
  EXPECT_THAT(message("/prompts=zero"), HasSubstr("the value is not JSON"));
  EXPECT_THAT(message("/spelt_wrong=1"), HasSubstr("'spelt_wrong' is no key here"));
}

}  // namespace
}  // namespace troupe
