#include "lab/resident_draft.h"

#include <gtest/gtest.h>

#include <numeric>

#include "runtime/engine.h"

namespace troupe {
namespace {

constexpr const char* kResidentModel = TROUPE_SOURCE_DIR "/models/tiny-qwen2moe-q8_0.gguf";

Result<ResidentDrafts> Measure(std::uint32_t slots, const ResidentDraftOptions& options) {
  const auto engine =
      Engine::Open(kResidentModel,
                   {.threads = 1,
                    .context = 128,
                    .offload = {.slots = slots, .predictor = "none", .lossiness = Chain{"drop"}}})
          .value();
  TROUPE_ASSIGN_OR_RETURN(LossySwitch experts, LossySwitch::Of(*engine));
  Session session = Session::Create(*engine).value();
  return DraftByResidents(session, *engine, experts, {{1, 400, 500, 600}, {1, 700, 350}}, options);
}

std::uint64_t Sum(const std::vector<std::uint64_t>& counts) {
  return std::accumulate(counts.begin(), counts.end(), std::uint64_t{0});
}

TEST(ResidentDraft, NearlyAllExpertsMakeNearlyAllGuessesRight) {
  const ResidentDrafts found = Measure(250, {.tokens = 24, .length = 4}).value();
  EXPECT_EQ(found.tokens, 46u);
  EXPECT_GT(Sum(found.right), 9 * Sum(found.tried) / 10);
  EXPECT_GT(found.TokensPerCheck(), 3.5);
}

TEST(ResidentDraft, FewExpertsMakeFewGuessesRightAndTheAnswerStaysThePlainOne) {
  const ResidentDrafts found = Measure(32, {.tokens = 24, .length = 3}).value();
  EXPECT_EQ(found.tokens, 46u);
  EXPECT_LT(Sum(found.right), Sum(found.tried));
  EXPECT_EQ(found.tokens, found.checks + Sum(found.right));
  EXPECT_GT(found.check.misses, 0u);
  EXPECT_LE(found.named, found.check.misses);
  EXPECT_GT(found.plain.misses, 0u);
}

}  // namespace
}  // namespace troupe
