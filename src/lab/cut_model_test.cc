#include "lab/cut_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>

#include "base/rng.h"
#include "forge/synth.h"
#include "runtime/session.h"
#include "testing/temp_folder.h"
#include "testing/test_seed.h"

namespace troupe {
namespace {

using testing::HasSubstr;

class CuttingAModel : public testing::TestWithParam<const char*> {
 protected:
  CuttingAModel() { EXPECT_TRUE(Synthesize(*FindShape(GetParam()), SynthOptions(), path_).ok()); }
  std::unique_ptr<Engine> Open(std::optional<std::uint32_t> slots = std::nullopt) {
    EngineOptions options{.threads = 2, .context = 64, .sequences = 4, .chunk = 12};
    options.offload.slots = slots;
    return Engine::Open(path_, options).value();
  }
  std::vector<TokenId> Text(const Engine& engine, std::size_t count) {
    std::vector<TokenId> tokens(count);
    for (TokenId& token : tokens) {
      token = static_cast<TokenId>(rng_.Below(engine.config().vocabulary));
    }
    return tokens;
  }

  TempFolder folder_;
  std::string path_ = folder_.PathOf("m.gguf");
  Rng rng_{TestSeed()};
};

TEST_P(CuttingAModel, RowsThatCrossAsTheyAreGiveTheLogitsOfTheWholeWhateverCrossesBesideThem) {
  for (const std::optional<std::uint32_t> slots : {std::optional<std::uint32_t>(), {6}}) {
    const std::unique_ptr<Engine> engine = Open(slots);
    const std::vector<TokenId> text = Text(*engine, 26);
    std::vector<std::vector<float>> whole;
    {
      Session session = Session::Create(*engine).value();
      const auto keep = [&whole](std::size_t, std::span<const float> logits) {
        whole.emplace_back(logits.begin(), logits.end());
      };
      ASSERT_TRUE(session.FeedForLogits(text, 0, Phase::kPrompt, keep).ok());
    }
    for (std::uint32_t layer = 1; layer < engine->config().layers; ++layer) {
      CutModel model = CutModel::Create(*engine, layer, 3, 26).value();
      ASSERT_EQ(model.most_rows(), 4u);
      for (int again = 0; again < 2; ++again) {
        model.Restart();
        for (std::size_t at = 0; at < text.size(); at += 4) {
          const std::size_t count = std::min<std::size_t>(4, text.size() - at);
          const auto rows = model.RunBelow(std::span(text).subspan(at, count));
          ASSERT_TRUE(rows.ok()) << rows.status().message();
          const std::vector<float> other(rows->size(), 0.25f);
          const std::span<const float> crossing[] = {*rows, other, *rows};
          ASSERT_TRUE(model.RunAbove(crossing).ok());
          for (std::size_t i = 0; i < count; ++i) {
            const std::span<const float> logits = model.Logits(i);
            const std::size_t vocabulary = model.vocabulary();
            EXPECT_TRUE(std::ranges::equal(logits.first(vocabulary), whole[at + i]));
            EXPECT_FALSE(std::ranges::equal(logits.subspan(vocabulary, vocabulary), whole[at + i]));
            EXPECT_TRUE(std::ranges::equal(logits.last(vocabulary), whole[at + i]))
                << "cut before layer " << layer << ", token " << at + i;
          }
        }
      }
    }
  }
}

TEST_P(CuttingAModel, CutsOutsideOfTheModelAndVariantsWithoutRoomAreRefused) {
  const std::unique_ptr<Engine> engine = Open();
  const std::uint32_t layers = engine->config().layers;
  for (const std::uint32_t layer : {0u, layers, layers + 7}) {
    EXPECT_THAT(CutModel::Create(*engine, layer, 1, 8).status().message(),
                HasSubstr("a cut before layer " + std::to_string(layer) + ", 1 to "));
  }
  EXPECT_THAT(CutModel::Create(*engine, 1, 4, 8).status().message(),
              HasSubstr("4 sequences are open"));
  EXPECT_THAT(CutModel::Create(*engine, 1, 13, 8).status().message(),
              HasSubstr("13 variants of a row, 12 rows at most"));
  EXPECT_TRUE(CutModel::Create(*engine, 1, 3, 64).ok());
}

INSTANTIATE_TEST_SUITE_P(Shapes, CuttingAModel,
                         testing::Values("tiny-qwen2moe", "tiny-deepseek2", "tiny-qwen3next",
                                         "tiny-lfm2moe", "tiny-granitehybrid"),
                         [](const auto& test) {
                           std::string name = test.param;
                           std::erase(name, '-');
                           return name;
                         });

}  // namespace
}  // namespace troupe
