// A model whose stream was widened by zeros answers with the same bytes: what is measured on it
// holds for the one it was made from.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/rng.h"
#include "forge/synth.h"
#include "forge/widen_stream.h"
#include "gguf/reader.h"
#include "runtime/session.h"
#include "testing/temp_folder.h"

namespace troupe {
namespace {

constexpr std::size_t kStreamTokens = 24;

class WidenedStream : public testing::TestWithParam<TensorType> {
 protected:
  void Synth(std::string_view shape) {
    ASSERT_TRUE(Synthesize(*FindShape(shape), {.layout = {.mix = {.type = GetParam()}}},
                           folder_.PathOf("narrow"))
                    .ok());
  }
  Result<Bytes> Widen(std::uint32_t factor) {
    const GgufModel narrow = GgufModel::Open(folder_.PathOf("narrow")).value();
    return WidenStream(narrow, factor, folder_.PathOf("wide"), nullptr);
  }
  std::vector<float> LogitsOf(const std::string& name) {
    const auto engine = Engine::Open(folder_.PathOf(name), {.threads = 1}).value();
    Session session = Session::Create(*engine).value();
    Rng rng(5);
    std::vector<std::int32_t> tokens(kStreamTokens);
    for (std::int32_t& token : tokens) {
      token = static_cast<std::int32_t>(rng.Below(engine->config().vocabulary));
    }
    std::vector<float> logits;
    EXPECT_TRUE(session
                    .FeedForLogits(tokens, 0, Phase::kPrompt,
                                   [&](std::size_t, std::span<const float> row) {
                                     logits.insert(logits.end(), row.begin(), row.end());
                                   })
                    .ok());
    return logits;
  }

  TempFolder folder_;
};

INSTANTIATE_TEST_SUITE_P(Types, WidenedStream,
                         testing::Values(TensorType::kF16, TensorType::kQ8_0, TensorType::kQ4_0),
                         [](const auto& test) { return std::string(Name(test.param)); });

TEST_P(WidenedStream, AnswersWithTheSameBytes) {
  Synth("tiny-qwen2moe");
  const Result<Bytes> bytes = Widen(4);
  ASSERT_TRUE(bytes.ok()) << bytes.status().ToString();
  const GgufModel wide = GgufModel::Open(folder_.PathOf("wide")).value();
  EXPECT_EQ(wide.file_bytes(), *bytes);
  EXPECT_EQ(wide.Find("blk.0.ffn_gate_exps.weight")->dims[0] % 256, 0u);
  EXPECT_EQ(LogitsOf("wide"), LogitsOf("narrow"));
}

TEST_P(WidenedStream, RefusesFactorsWithoutAnExactRootAndOtherFamilies) {
  Synth("tiny-qwen2moe");
  for (const std::uint32_t factor : {0u, 2u, 3u, 8u}) {
    EXPECT_THAT(Widen(factor).status().message(), testing::HasSubstr("expected 4, 16, 64"));
  }
  Synth("tiny-olmoe");
  EXPECT_THAT(Widen(4).status().message(), testing::HasSubstr("only a qwen2moe's"));
}

}  // namespace
}  // namespace troupe
