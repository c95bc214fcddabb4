// Exact means exact: whatever the number of threads, the way a prompt is cut, the instruction set
// and whoever computes an expert, a token's logits are the same bytes. One tiny random model a
// family, and some in further types.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <future>
#include <string>
#include <vector>

#include "base/rng.h"
#include "forge/synth.h"
#include "gguf/reader.h"
#include "gguf/writer.h"
#include "kernels/target.h"
#include "model/expert_mlp.h"
#include "model/tiny_model_for_test.h"
#include "runtime/session.h"
#include "testing/temp_folder.h"
#include "testing/test_seed.h"

namespace troupe {
namespace {

struct Case {
  const char* shape;
  TensorType type;
};

std::string NameOf(const testing::TestParamInfo<Case>& info) {
  std::string name = fmt::format("{}_{}", info.param.shape, Name(info.param.type));
  for (char& c : name) {
    if (c == '-') c = '_';
  }
  return name;
}

using RowLogits = std::vector<std::vector<float>>;

// Tells what differs, not only that something does.
testing::AssertionResult SameRows(const RowLogits& a, const RowLogits& b) {
  if (a.size() != b.size()) {
    return testing::AssertionFailure() << a.size() << " rows against " << b.size();
  }
  for (std::size_t row = 0; row < a.size(); ++row) {
    for (std::size_t i = 0; i < a[row].size(); ++i) {
      if (std::memcmp(&a[row][i], &b[row][i], sizeof(float)) == 0) continue;
      return testing::AssertionFailure()
             << "row " << row << ", logit " << i << ": " << a[row][i] << " against " << b[row][i];
    }
  }
  return testing::AssertionSuccess();
}

class Exactness : public testing::TestWithParam<Case> {
 protected:
  static constexpr std::size_t kTokens = 70;  // more than a tile of queries and a block of 32

  void SetUp() override {
    const ModelShape* shape = FindShape(GetParam().shape);
    ASSERT_NE(shape, nullptr);
    SynthOptions options;
    options.layout.mix.type = GetParam().type;
    ASSERT_TRUE(Synthesize(*shape, options, path()).ok());
    Rng rng(TestSeed());
    for (std::size_t i = 0; i < kTokens; ++i) {
      tokens_.push_back(static_cast<std::int32_t>(rng.Below(shape->vocabulary)));
    }
  }
  void TearDown() override { ForceTarget(std::nullopt); }

  std::string path() const { return folder_.PathOf("m.gguf"); }

  // Feeds the tokens in pieces of the given lengths (the last one repeats) and returns all logits.
  RowLogits Run(std::uint32_t threads, std::uint32_t chunk, const std::vector<std::size_t>& pieces,
                KvType kv_type = KvType::kF16) const {
    EngineOptions options;
    options.threads = threads;
    options.chunk = chunk;
    options.context = kTokens;
    options.kv_type = kv_type;
    const std::unique_ptr<Engine> engine = Engine::Open(path(), options).value();
    Session session = Session::Create(*engine).value();
    RowLogits rows;
    for (std::size_t at = 0, piece = 0; at < kTokens; ++piece) {
      const std::size_t want = pieces[std::min(piece, pieces.size() - 1)];
      const std::size_t count = std::min(want, kTokens - at);
      const Status status =
          session.FeedForLogits(std::span(tokens_).subspan(at, count), 0, Phase::kPrompt,
                                [&](std::size_t, std::span<const float> row) {
                                  rows.emplace_back(row.begin(), row.end());
                                });
      EXPECT_TRUE(status.ok()) << status.ToString();
      at += count;
    }
    return rows;
  }

  TempFolder folder_;
  std::vector<std::int32_t> tokens_;
};

TEST_P(Exactness, LogitsDoNotDependOnTheNumberOfThreads) {
  const RowLogits one = Run(1, 32, {kTokens});
  EXPECT_TRUE(SameRows(one, Run(2, 32, {kTokens})));
  EXPECT_TRUE(SameRows(one, Run(3, 32, {kTokens})));
  // The comparator can fail, and the rows are not all alike.
  EXPECT_FALSE(SameRows(one, RowLogits(one.rbegin(), one.rend())));
}

TEST_P(Exactness, PrefillGivesTheBytesOfTokenByToken) {
  const RowLogits alone = Run(2, 64, {1});
  EXPECT_TRUE(SameRows(alone, Run(2, 64, {kTokens})));
  EXPECT_TRUE(SameRows(alone, Run(2, 7, {kTokens})));
  EXPECT_TRUE(SameRows(alone, Run(2, 64, {33, 1, 2, 16})));
}

TEST_P(Exactness, EveryInstructionSetGivesTheSameBytes) {
  const RowLogits best = Run(2, 32, {40, 1});
  for (const Target target : SupportedTargets()) {
    ForceTarget(target);
    EXPECT_TRUE(SameRows(best, Run(2, 32, {40, 1}))) << Name(target);
  }
}

TEST_P(Exactness, ASmallKvCacheIsAsExactAndNearlyTheSame) {
  const RowLogits q8 = Run(2, 32, {kTokens}, KvType::kQ8_0);
  EXPECT_TRUE(SameRows(q8, Run(1, 16, {5, 1, 32}, KvType::kQ8_0)));
  EXPECT_FALSE(SameRows(q8, Run(2, 32, {kTokens})));  // the option has its effect
}

// Computes experts on a thread of its own, as a host elsewhere would, and answers with rows; of
// some it hands out the weights. Which, and in which order, is drawn.
class ExpertsElsewhere final : public ExpertSource {
 public:
  ExpertsElsewhere(const ModelConfig& config, const ModelWeights& weights, std::size_t most_rows,
                   double share_of_weights)
      : config_(config),
        weights_(weights),
        share_of_weights_(share_of_weights),
        mlp_(ExpertMlp::Create(config.moe.expert_ff, most_rows).value()) {}

  void Ask(const ExpertBatch& batch) override {
    if (host_.valid()) host_.get();  // of a layer that was given weights alone
    ready_.clear();
    answers_.clear();
    for (const ExpertDemand& demand : batch.demands) {
      if (rng_.Uniform() < share_of_weights_) {
        ready_.push_back({.expert = demand.expert, .answer = ExpertOf(batch, demand)});
      } else {
        answers_.push_back({demand, {}});
      }
    }
    given_weights_ += ready_.size();
    given_rows_ += answers_.size();
    host_ = std::async(std::launch::async, [this, batch] {
      for (Answer& answer : answers_) {
        answer.rows.resize(answer.demand.tokens * config_.width);
        mlp_.Run(ExpertOf(batch, answer.demand), batch.input, batch.RowsOf(answer.demand.expert),
                 answer.rows, threads_);
      }
    });
  }
  Result<std::span<const ReadyExpert>> Take(bool wait) override {
    given_ = std::exchange(ready_, {});
    if (!wait) return std::span<const ReadyExpert>(given_);
    if (host_.valid()) host_.get();
    for (const Answer& answer : answers_) {
      given_.push_back({.expert = answer.demand.expert, .answer = ReadyRows{answer.rows}});
    }
    for (std::size_t i = given_.size(); i > 1; --i) std::swap(given_[i - 1], given_[rng_.Below(i)]);
    return std::span<const ReadyExpert>(given_);
  }
  ExpertUsage usage() const override { return {}; }
  std::size_t given_weights() const { return given_weights_; }
  std::size_t given_rows() const { return given_rows_; }

 private:
  struct Answer {
    ExpertDemand demand;
    std::vector<float> rows;
  };

  const Mlp& ExpertOf(const ExpertBatch& batch, const ExpertDemand& demand) const {
    return weights_.layers[batch.layer].moe.experts[demand.expert];
  }

  const ModelConfig& config_;
  const ModelWeights& weights_;
  const double share_of_weights_;
  ExpertMlp mlp_;
  ThreadPool threads_{1};
  Rng rng_{TestSeed()};
  std::vector<ReadyExpert> ready_, given_;
  std::vector<Answer> answers_;
  std::future<void> host_;
  std::size_t given_weights_ = 0, given_rows_ = 0;
};

TEST_P(Exactness, RowsOfExpertsThatWereComputedElsewhereAreTheSameBytes) {
  const TinyModel model(GetParam().shape, GetParam().type);
  if (model.config().moe.routing.experts == 0) GTEST_SKIP() << "no experts";
  ModelPart part(model, model.AllLayers(), {.context = kTokens, .sequences = 2, .chunk = kTokens});
  const auto expected = part.LogitsOneByOne(tokens_);
  for (const double share_of_weights : {0.0, 0.5}) {
    ExpertsElsewhere elsewhere(model.config(), part.weights(), kTokens, share_of_weights);
    part.Use(elsewhere);
    KvSequence sequence = part.NewSequence(kTokens);
    RowLogits logits;
    for (std::size_t at = 0; at < kTokens;) {
      const std::size_t count = at == 0 ? kTokens - 5 : 1;
      ASSERT_TRUE(
          part.Forward({.cache = &sequence, .tokens = std::span(tokens_).subspan(at, count)}).ok());
      for (LogitRow& row : part.Logits(0, count)) logits.push_back(std::move(row));
      at += count;
    }
    EXPECT_TRUE(SameRows(logits, expected));
    EXPECT_GT(elsewhere.given_rows(), 0u);
    EXPECT_EQ(elsewhere.given_weights() > 0, share_of_weights > 0);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Families, Exactness,
    testing::Values(
        Case{"tiny-llama", TensorType::kQ4_0}, Case{"tiny-mixtral", TensorType::kQ5_K},
        Case{"tiny-qwen2moe", TensorType::kQ4_K}, Case{"tiny-qwen3moe", TensorType::kQ8_0},
        Case{"tiny-olmoe", TensorType::kQ6_K}, Case{"tiny-deepseek", TensorType::kF16},
        Case{"tiny-deepseek2", TensorType::kQ4_K}, Case{"tiny-qwen3next", TensorType::kQ8_0},
        Case{"tiny-qwen35moe", TensorType::kQ4_K}, Case{"tiny-glm-flash", TensorType::kIQ4_XS},
        Case{"tiny-gpt-oss", TensorType::kMXFP4}, Case{"tiny-minimax-m2", TensorType::kIQ4_NL},
        Case{"tiny-lfm2moe", TensorType::kQ4_K}, Case{"tiny-glm4moe-norms", TensorType::kQ8_0},
        Case{"tiny-granitemoe-shared", TensorType::kQ6_K},
        Case{"tiny-granitehybrid", TensorType::kQ8_0}, Case{"tiny-gemma4", TensorType::kQ5_K},
        Case{"tiny-nemotron_h_moe", TensorType::kQ5_0}, Case{"tiny-nemotron_h", TensorType::kQ8_0},
        Case{"tiny-qwen3moe-factors", TensorType::kNVFP4},
        Case{"tiny-bailingmoe2", TensorType::kQ4_0}, Case{"tiny-hunyuan-moe", TensorType::kQ8_0}),
    NameOf);

// A type of each way to store signs (quant/book_codes.h).
INSTANTIATE_TEST_SUITE_P(CodeBooks, Exactness,
                         testing::Values(Case{"tiny-qwen3moe", TensorType::kIQ1_M},
                                         Case{"tiny-qwen3moe", TensorType::kIQ2_XS},
                                         Case{"tiny-qwen3moe", TensorType::kIQ3_S}),
                         NameOf);

std::vector<float> Floats(const GgufModel& file, const std::string& name) {
  const TensorInfo& tensor = *file.Require(name).value();
  EXPECT_EQ(tensor.type, TensorType::kF32);
  std::vector<float> values(tensor.ElementCount());
  EXPECT_TRUE(file.ReadTensor(tensor, std::as_writable_bytes(std::span(values))).ok());
  return values;
}

// attn_kv_b as old converters wrote it: per head the rows that make keys, then those that make
// values. attn_k_b holds the first transposed.
std::vector<float> Combined(const GgufModel& file, const std::string& prefix, const MlaConfig& mla,
                            std::size_t heads) {
  const std::vector<float> k = Floats(file, prefix + "attn_k_b.weight");
  const std::vector<float> v = Floats(file, prefix + "attn_v_b.weight");
  std::vector<float> both;
  for (std::size_t h = 0; h < heads; ++h) {
    const float* head = k.data() + h * mla.kv_rank * mla.nope_dim;
    for (std::size_t row = 0; row < mla.nope_dim; ++row) {
      for (std::size_t col = 0; col < mla.kv_rank; ++col) {
        both.push_back(head[col * mla.nope_dim + row]);
      }
    }
    const float* values = v.data() + h * mla.value_dim * mla.kv_rank;
    both.insert(both.end(), values, values + mla.value_dim * mla.kv_rank);
  }
  return both;
}

void WriteAsOldFile(const GgufModel& file, const MlaConfig& mla, std::size_t heads,
                    const std::string& path) {
  std::vector<TensorSpec> specs;
  std::vector<std::vector<float>> data;
  for (const TensorInfo& tensor : file.tensors()) {
    const std::size_t dot = tensor.name.find("attn_k_b.weight");
    if (tensor.name.find("attn_v_b.weight") != std::string::npos) continue;
    if (dot == std::string::npos) {
      specs.push_back(tensor);
      data.push_back(Floats(file, tensor.name));
    } else {
      const std::string prefix = tensor.name.substr(0, dot);
      specs.emplace_back(prefix + "attn_kv_b.weight", TensorType::kF32,
                         std::initializer_list<std::uint64_t>{
                             mla.kv_rank, heads * (mla.nope_dim + mla.value_dim)});
      data.push_back(Combined(file, prefix, mla, heads));
    }
  }
  GgufWriter writer = GgufWriter::Create(path, file.metadata(), specs).value();
  for (std::size_t i = 0; i < specs.size(); ++i) {
    ASSERT_TRUE(writer.Append(specs[i].name, std::as_bytes(std::span(data[i]))).ok());
  }
  ASSERT_TRUE(writer.Finish().ok());
}

std::vector<float> RowLogitsOf(const std::string& path) {
  const std::unique_ptr<Engine> engine = Engine::Open(path, {.threads = 1}).value();
  Session session = Session::Create(*engine).value();
  EXPECT_TRUE(session.Feed(std::vector<std::int32_t>{1, 300, 17, 44, 5}).ok());
  return {session.logits().begin(), session.logits().end()};
}

TEST(LatentAttention, OldFilesWithCombinedMatricesAnswerLikeNewOnes) {
  const ModelShape& shape = *FindShape("tiny-deepseek2");
  TempFolder folder;
  SynthOptions options;
  options.layout.mix.type = TensorType::kF32;
  ASSERT_TRUE(Synthesize(shape, options, folder.PathOf("new.gguf")).ok());
  const GgufModel file = GgufModel::Open(folder.PathOf("new.gguf")).value();
  WriteAsOldFile(file, *shape.mla, shape.heads, folder.PathOf("old.gguf"));
  const std::vector<float> now = RowLogitsOf(folder.PathOf("new.gguf"));
  const std::vector<float> old = RowLogitsOf(folder.PathOf("old.gguf"));
  // Transposing floats loses nothing, and the products are the same: so are the bytes.
  const auto [least, most] = std::minmax_element(now.begin(), now.end());
  EXPECT_GT(*most - *least, 0.1f);
  EXPECT_TRUE(SameRows({now}, {old}));
}

}  // namespace
}  // namespace troupe
