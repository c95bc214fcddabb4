// Answers with drafts against answers without, in combinations drawn at random: of drafters, among
// them a draft model that is the model itself or one of random weights, the experts in memory, and
// heads of the models' own; of models with keys and values alone and with states; budget, threads,
// temperature, penalties, grammar, stop strings, batch neighbours and cancelled requests. Each
// answer has the bytes that it gets alone, from an engine that holds every expert and drafts
// nothing. TROUPE_CASES says how many combinations.
#include <gtest/gtest.h>

#include "forge/synth.h"
#include "forge/synth_shape.h"
#include "gguf/reader.h"
#include "runtime/agreeing_head_for_test.h"
#include "speculation_cases_for_test.h"
#include "testing/temp_folder.h"
#include "testing/test_seed.h"

namespace troupe {
namespace {

constexpr const char* kModel = TROUPE_SOURCE_DIR "/models/tiny-qwen2moe-q8_0.gguf";

using Slots = std::optional<std::uint32_t>;

class SpeculationExactness : public testing::Test {
 protected:
  // A model that knows nothing, with the vocabulary of the one that is tested.
  std::string Random(const std::string& shape) const {
    std::string path = folder_.PathOf(shape + ".gguf");
    const SynthOptions options{.tokenizer = GgufModel::Open(kModel)->metadata()};
    ModelShape made = *FindShape(shape);
    made.vocabulary = 4096;
    EXPECT_TRUE(Synthesize(made, options, path).ok());
    return path;
  }
  std::string WithHead(const std::string& shape) const {
    std::string path = folder_.PathOf(shape + ".gguf");
    WriteAgreeingModel(path, shape, 0.1f, kModel);
    return path;
  }

  const TempFolder folder_;
};

TEST_F(SpeculationExactness, NoDraftChangesAByte) {
  SpeculationCases cases(kModel);
  std::vector<std::unique_ptr<Engine>> engines;
  const std::string unrelated = Random("tiny-llama");
  for (const std::uint32_t threads : {1u, 3u}) {
    for (const Slots slots : {Slots(), Slots(130), Slots(12)}) {
      EngineOptions options{.threads = threads,
                            .chunk = threads == 1 ? 24u : 64u,
                            .drafters = *ParseDraftChoice("auto"),
                            .draft = threads == 1 ? kModel : unrelated};
      options.offload.slots = slots;
      options.drafters.resident = true;
      engines.push_back(cases.Open(options));
    }
  }
  const std::uint64_t seed = TestSeed(), wanted = TestCases(200);
  // All but "heads", of which this model has none.
  std::vector<std::string> names = DraftChoiceNames();
  std::erase(names, "heads");
  std::uint64_t done = 0;
  for (std::uint64_t round = 0; done < wanted; ++round) {
    SCOPED_TRACE(round);
    Rng rng(seed + round);
    constexpr std::string_view kOften[] = {"draft", "resident"};
    const std::string name(rng.Below(2) == 0 ? kOften[rng.Below(2)]
                                             : names[rng.Below(names.size())]);
    SCOPED_TRACE(name);
    done += cases.PlaySome(*engines[rng.Below(engines.size())], name, rng);
    if (HasFatalFailure()) return;
  }
  const SpeculationUse& drafts = cases.drafts();
  EXPECT_GT(drafts.checks, wanted / 2);
  EXPECT_GT(drafts.accepted, wanted);
  EXPECT_GT(drafts.drafted - drafts.accepted, wanted);
  const auto& [drafted, accepted] = cases.By(DraftSource::kModel);
  EXPECT_GT(accepted, wanted / 20);
  EXPECT_GT(drafted - accepted, wanted / 100);
  const DraftedTokens& by_residents = cases.By(DraftSource::kResident);
  EXPECT_GT(by_residents.accepted, wanted / 50);  // what has come in time follows the machine
  EXPECT_GT(by_residents.drafted - by_residents.accepted, 0u);
  EXPECT_GT(cases.draft_reads_used(), wanted / 50);
}

// With states that go back behind wrong guesses, and with heads.
TEST_F(SpeculationExactness, NorDoesOneOfModelsWithStatesAndHeads) {
  struct Family {
    std::string model;
    bool has_head;
  };
  const std::vector<Family> families = {
      {Random("tiny-qwen3next"), false},      {WithHead("tiny-qwen35moe"), true},
      {Random("tiny-lfm2moe"), false},        {Random("tiny-granitehybrid"), false},
      {Random("tiny-nemotron_h_moe"), false}, {WithHead("tiny-glm4moe"), true},
      {WithHead("tiny-qwen2moe-head"), true}};
  const std::uint64_t seed = TestSeed(), wanted = TestCases(300) / families.size();
  DraftedTokens by_heads;
  for (const Family& family : families) {
    SCOPED_TRACE(family.model);
    SpeculationCases cases(family.model);
    std::vector<std::unique_ptr<Engine>> engines;
    for (const std::uint32_t threads : {1u, 3u}) {
      for (const Slots slots : {Slots(), Slots(12)}) {
        EngineOptions options{.threads = threads,
                              .chunk = threads == 1 ? 24u : 64u,
                              .drafters = *ParseDraftChoice(family.has_head ? "heads" : "lookup"),
                              .draft = {}};
        options.offload.slots = slots;
        engines.push_back(cases.Open(options));
      }
    }
    const std::vector<std::string> names = {family.has_head ? "heads" : "random", "lookup", "wrong",
                                            "random", family.has_head ? "heads" : "auto"};
    std::uint64_t done = 0;
    for (std::uint64_t round = 0; done < wanted; ++round) {
      SCOPED_TRACE(round);
      Rng rng(seed + round);
      const std::string& name = names[rng.Below(names.size())];
      SCOPED_TRACE(name);
      done += cases.PlaySome(*engines[rng.Below(engines.size())], name, rng);
      if (HasFatalFailure()) return;
    }
    EXPECT_GT(cases.drafts().accepted, wanted / 2);
    EXPECT_GT(cases.drafts().drafted - cases.drafts().accepted, wanted / 2);
    if (!family.has_head) continue;
    EXPECT_GT(cases.By(DraftSource::kHead).accepted, 0u);
    by_heads.drafted += cases.By(DraftSource::kHead).drafted;
    by_heads.accepted += cases.By(DraftSource::kHead).accepted;
  }
  EXPECT_GT(by_heads.drafted, by_heads.accepted);  // of one model all may be right
}

}  // namespace
}  // namespace troupe
