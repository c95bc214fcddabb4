// The head against one in plain loops (slow_head_for_test.h).
#include "model/next_token_head.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numeric>

#include "gguf/writer.h"
#include "model/slow_head_for_test.h"
#include "model/tiny_model_for_test.h"
#include "testing/temp_folder.h"
#include "testing/test_seed.h"

namespace troupe {
namespace {

using testing::HasSubstr;

// Both sum some hundred products of numbers near 1 a layer, one of them in float: an error of
// 1e-7 for each of some ten products behind each other leaves a hundred times that.
constexpr double kHeadTolerance = 1e-4;

class NextTokenHeadTest : public testing::TestWithParam<const char*> {
 protected:
  static constexpr std::uint32_t kPositions = 48;

  NextTokenHeadTest()
      : model_(GetParam(), TensorType::kF32),
        part_(model_, model_.AllLayers()),
        head_(NextTokenHead::Open(model_.file(), model_.config(), part_.weights(), part_.threads(),
                                  {.context = kPositions, .sequences = 2, .threads = 2})
                  .value()),
        slow_(model_.file(), model_.config()) {}

  KvSequence NewSequence() {
    KvSequence sequence = head_->NewSequence();
    EXPECT_TRUE(sequence.Reserve(kPositions).ok());
    return sequence;
  }
  std::vector<float> RandomRows(std::size_t count) {
    std::vector<float> rows(count * model_.config().width);
    for (float& x : rows) x = static_cast<float>(2 * rng_.Uniform() - 1);
    return rows;
  }
  SlowRow RowAt(std::span<const float> rows, std::size_t i) const {
    const auto row = rows.subspan(i * model_.config().width, model_.config().width);
    return SlowRow(row.begin(), row.end());
  }
  // The largest difference, measured by the largest number. What is infinite has to be so in both.
  static double Difference(std::span<const float> got, const SlowRow& expected) {
    double most = 0, largest = 0;
    for (std::size_t i = 0; i < got.size(); ++i) {
      if (std::isinf(got[i]) || std::isinf(expected[i])) {
        if (got[i] != expected[i]) return std::numeric_limits<double>::infinity();
        continue;
      }
      most = std::max(most, std::abs(got[i] - expected[i]));
      largest = std::max(largest, std::abs(expected[i]));
    }
    return most / largest;
  }

  Rng rng_{TestSeed()};
  TinyModel model_;
  ModelPart part_;
  std::unique_ptr<NextTokenHead> head_;
  SlowHead slow_;
};

TEST_P(NextTokenHeadTest, SaysWhatPlainLoopsSay) {
  KvSequence sequence = NewSequence();
  const auto tokens = model_.Tokens(12, rng_);
  const std::vector<float> rows = RandomRows(tokens.size());
  SlowRow stream;
  for (std::size_t first = 0, count = 1; first < tokens.size(); first += count, ++count) {
    count = std::min(count, tokens.size() - first);
    const std::size_t width = model_.config().width;
    ASSERT_TRUE(head_
                    ->Forward(sequence, TokenIds(tokens).subspan(first, count),
                              std::span(rows).subspan(first * width, count * width))
                    .ok());
    for (std::size_t i = first; i < first + count; ++i) {
      stream = slow_.Read(static_cast<std::size_t>(tokens[i]), RowAt(rows, i));
    }
    EXPECT_LT(Difference(head_->LastRow(), stream), kHeadTolerance);
    EXPECT_LT(Difference(head_->Logits(), slow_.Logits(stream)), kHeadTolerance);
  }
  EXPECT_EQ(sequence.length(), tokens.size());
  // Further ahead it goes on from its own row.
  const auto ahead = model_.Tokens(2, rng_);
  for (const std::int32_t& token : ahead) {
    const std::vector<float> own(head_->LastRow().begin(), head_->LastRow().end());
    ASSERT_TRUE(head_->Forward(sequence, {&token, 1}, own).ok());
    stream = slow_.Read(static_cast<std::size_t>(token), stream);
    EXPECT_LT(Difference(head_->Logits(), slow_.Logits(stream)), kHeadTolerance);
  }
}

TEST_P(NextTokenHeadTest, HearsOfTheTokenTheRowAndThePast) {
  const auto tokens = model_.Tokens(3, rng_);
  const std::vector<float> rows = RandomRows(3);
  const auto said = [&](std::span<const std::int32_t> of, std::span<const float> beside) {
    KvSequence sequence = NewSequence();
    EXPECT_TRUE(head_->Forward(sequence, of, beside).ok());
    return SlowRow(head_->Logits().begin(), head_->Logits().end());
  };
  const SlowRow whole = said(tokens, rows);
  const auto differs = [&](const SlowRow& other) {
    const std::vector<float> floats(other.begin(), other.end());
    return Difference(floats, whole) > 10 * kHeadTolerance;
  };
  EXPECT_FALSE(differs(said(tokens, rows)));
  auto other_token = tokens;
  other_token.back() ^= 1;
  EXPECT_TRUE(differs(said(other_token, rows)));
  auto other_row = rows;
  for (std::size_t i = other_row.size() - model_.config().width; i < other_row.size(); ++i) {
    other_row[i] = -other_row[i];
  }
  EXPECT_TRUE(differs(said(tokens, other_row)));
  auto other_past = tokens;
  other_past.front() ^= 1;
  EXPECT_TRUE(differs(said(other_past, rows)));
}

TEST_P(NextTokenHeadTest, TakesTheBytesThatItSaid) {
  const NextTokenShape shape{.context = kPositions, .sequences = 2, .threads = 2};
  const Bytes weights =
      MeasureWeights(model_.file(), NextTokenHeadOf(model_.file(), model_.config()), {1, 2})
          .value()
          .bytes.total();
  const Bytes all = NextTokenHead::BytesFor(model_.file(), model_.config(), shape).value();
  EXPECT_GT(weights, Bytes());
  EXPECT_GT(all, weights);
  EXPECT_LT(all, weights + 16_MiB);
}

INSTANTIATE_TEST_SUITE_P(Families, NextTokenHeadTest,
                         testing::Values("tiny-glm4moe", "tiny-glm4moe-norms", "tiny-qwen35moe",
                                         "tiny-qwen2moe-some", "tiny-qwen2moe-head"),
                         [](const auto& shape) {
                           std::string name = shape.param;
                           std::erase(name, '-');
                           return name;
                         });

TEST(NextTokenHeads, AreOfFamiliesWhoseLayerIsKnownAndOfFilesThatHaveThem) {
  const TinyModel bailing("tiny-bailingmoe2"), plain("tiny-qwen3moe"), glm("tiny-glm4moe");
  EXPECT_FALSE(HasNextTokenHead(bailing.file(), bailing.config()));
  EXPECT_FALSE(HasNextTokenHead(plain.file(), plain.config()));
  EXPECT_TRUE(HasNextTokenHead(glm.file(), glm.config()));
  EXPECT_FALSE(HasNextTokenHead(plain.file(), glm.config())) << "the file lacks the tensors";
}

TEST(NextTokenHeads, WithADenseBlockAndAnOutputOfSomeTokensTakeLess) {
  const auto bytes = [](const char* shape) {
    const TinyModel model(shape, TensorType::kF32);
    const ModelConfig head = NextTokenHeadOf(model.file(), model.config());
    return MeasureWeights(model.file(), head, {1, 2}).value().bytes;
  };
  const WeightBytes some = bytes("tiny-qwen2moe-some"), dense = bytes("tiny-qwen2moe-head");
  EXPECT_GT(some.experts, Bytes());
  EXPECT_EQ(dense.experts, Bytes());
  EXPECT_LT(3 * dense.total().count(), some.total().count());
}

void WriteWithKeys(const Metadata& metadata, const GgufModel& from, const std::string& path) {
  const std::vector<TensorSpec> specs(from.tensors().begin(), from.tensors().end());
  GgufWriter writer = GgufWriter::Create(path, metadata, specs).value();
  for (const TensorInfo& tensor : from.tensors()) {
    std::vector<std::byte> bytes(tensor.bytes.count());
    ASSERT_TRUE(from.ReadTensor(tensor, bytes).ok());
    ASSERT_TRUE(writer.Append(tensor.name, bytes).ok());
  }
  ASSERT_TRUE(writer.Finish().ok());
}

TEST(NextTokenHeads, OfTokensThatAreNoneOfTheVocabularyAreRefused) {
  const TinyModel model("tiny-qwen2moe-some");
  const auto error = [&](std::vector<std::int32_t> tokens) {
    Metadata metadata = model.file().metadata();
    metadata.Set("qwen2moe.nextn_tokens", Array{std::move(tokens)});
    const TempFolder folder;
    const std::string path = folder.PathOf("m.gguf");
    WriteWithKeys(metadata, model.file(), path);
    const GgufModel file = GgufModel::Open(path).value();
    const auto bytes = NextTokenHead::BytesFor(file, model.config(), {.context = 16});
    return bytes.ok() ? "" : std::string(bytes.status().message());
  };
  std::vector<std::int32_t> tokens(200);
  std::iota(tokens.begin(), tokens.end(), 0);
  EXPECT_EQ(error(tokens), "");
  tokens[3] = tokens[2];
  EXPECT_THAT(error(tokens), HasSubstr("ascending ids of the 512 tokens"));
  tokens[3] = 3;
  tokens.back() = 512;
  EXPECT_THAT(error(tokens), HasSubstr("ascending ids of the 512 tokens"));
  tokens.pop_back();
  EXPECT_THAT(error(tokens), HasSubstr("output has 200 rows, expected one for each of 199 tokens"));
  EXPECT_THAT(error({}), HasSubstr("one token at least"));
}

}  // namespace
}  // namespace troupe
