// An expert whose computing begins when its gate and up have come gives the same bytes as one that
// has come whole: with biases, with gate and up in one tensor, with a factor for each matrix. The
// reader gives pieces of 4 KiB in the order of the file, one for each wait.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <deque>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/rng.h"
#include "forge/pack_model.h"
#include "forge/synth.h"
#include "gguf/reader.h"
#include "runtime/container_path.h"
#include "runtime/session.h"
#include "testing/temp_folder.h"
#include "testing/test_seed.h"

namespace troupe {
namespace {

// Of another reader the answers in the order in which they were asked for, one for each call that
// may wait: a medium that is slower than whoever computes.
class PieceByPiece final : public AsyncReader {
 public:
  explicit PieceByPiece(std::unique_ptr<AsyncReader> behind) : behind_(std::move(behind)) {}

  std::string_view name() const override { return "piece by piece"; }
  std::size_t depth() const override { return behind_->depth(); }
  std::size_t under_way() const override { return order_.size(); }
  void Submit(std::span<const ReadRequest> requests) override {
    for (const ReadRequest& request : requests) order_.push_back(request.tag);
    behind_->Submit(requests);
  }
  void Collect(std::vector<ReadAnswer>& answers, std::optional<Nanos> wait) override {
    if (order_.empty() || wait == Nanos{0}) return;
    auto next = Next();
    while (next == come_.end() && behind_->under_way() > 0) {
      behind_->Collect(come_, std::nullopt);
      next = Next();
    }
    ASSERT_NE(next, come_.end());
    answers.push_back(*next);
    come_.erase(next);
    order_.pop_front();
  }

 private:
  std::vector<ReadAnswer>::iterator Next() {
    return std::ranges::find(come_, order_.front(), &ReadAnswer::tag);
  }

  std::unique_ptr<AsyncReader> behind_;
  std::deque<std::uint64_t> order_;  // tags
  std::vector<ReadAnswer> come_;     // and not been given
};

struct BegunCase {
  const char* shape;
  TensorType type;
};

struct BegunAnswer {
  std::vector<std::vector<float>> logits;
  std::uint64_t begun = 0, misses = 0;
};

class BegunExperts : public testing::TestWithParam<BegunCase> {
 protected:
  static constexpr std::size_t kPrompt = 12, kTokens = 36;

  void SetUp() override {
    const ModelShape& shape = *FindShape(GetParam().shape);
    SynthOptions options;
    options.layout.mix.type = GetParam().type;
    ASSERT_TRUE(Synthesize(shape, options, path()).ok());
    Rng rng(TestSeed());
    for (std::size_t i = 0; i < kTokens; ++i) {
      tokens_.push_back(static_cast<TokenId>(rng.Below(shape.vocabulary)));
    }
    const auto whole = Engine::Open(path(), {.threads = 1}).value();
    slots_ = whole->plan().needs.AllExperts() / 2;
    resident_ = Feed(*whole);
  }

  std::string path() const { return folder_.PathOf("m.gguf"); }
  void Pack() {
    const GgufModel model = GgufModel::Open(path()).value();
    ASSERT_TRUE(PackModel(model, {}, ContainerPathFor(path())).ok());
  }

  BegunAnswer Run(Bytes piece, std::uint32_t threads, const std::string& predictor = "none") {
    EngineOptions options{.threads = threads};
    options.offload.slots = slots_;
    options.offload.predictor = predictor;
    options.offload.prefetch.governed = false;
    options.offload.loader = LoaderOptions{.piece = piece, .prefetch_piece = piece};
    options.offload.wrap_reader = [](std::unique_ptr<AsyncReader> reader) {
      return std::make_unique<PieceByPiece>(std::move(reader));
    };
    return Feed(*Engine::Open(path(), options).value());
  }

  // A prompt at once, the rest one by one.
  BegunAnswer Feed(Engine& engine) {
    Session session = Session::Create(engine).value();
    BegunAnswer answer;
    for (std::size_t at = 0; at < kTokens;) {
      const std::size_t count = at == 0 ? kPrompt : 1;
      const Status status = session.FeedForLogits(
          std::span(tokens_).subspan(at, count), 0, at == 0 ? Phase::kPrompt : Phase::kDecode,
          [&](std::size_t, std::span<const float> row) {
            answer.logits.emplace_back(row.begin(), row.end());
          });
      EXPECT_TRUE(status.ok()) << status.ToString();
      at += count;
    }
    answer.misses = engine.expert_usage().misses;
    if (const auto offload = engine.offload_report()) answer.begun = offload->begun_before_down;
    return answer;
  }

  bool IsAsResident(const BegunAnswer& answer) const {
    return std::ranges::equal(answer.logits, resident_.logits, [](const auto& a, const auto& b) {
      return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * 4) == 0;
    });
  }

  TempFolder folder_;
  std::vector<TokenId> tokens_;
  std::uint32_t slots_ = 0;
  BegunAnswer resident_;
};

INSTANTIATE_TEST_SUITE_P(Types, BegunExperts,
                         testing::Values(BegunCase{"tiny-gpt-oss", TensorType::kMXFP4},
                                         BegunCase{"tiny-gemma4", TensorType::kMXFP4},
                                         BegunCase{"tiny-qwen3moe-factors", TensorType::kNVFP4}),
                         [](const auto& test) {
                           std::string name = test.param.shape;
                           std::ranges::replace(name, '-', '_');
                           return name;
                         });

TEST_P(BegunExperts, GiveTheSameBytesAsThoseThatCameWhole) {
  Pack();
  for (const std::uint32_t threads : {1u, 2u}) {
    const BegunAnswer answer = Run(4_KiB, threads);
    EXPECT_TRUE(IsAsResident(answer)) << threads;
    EXPECT_GT(answer.misses, 0u);
    EXPECT_EQ(answer.begun, answer.misses) << threads;
  }
}

TEST_P(BegunExperts, GiveTheSameBytesWhereOthersAreReadAhead) {
  Pack();
  const BegunAnswer answer = Run(4_KiB, 2, "lookahead");
  EXPECT_TRUE(IsAsResident(answer));
  EXPECT_GT(answer.begun, 0u);
}

TEST_P(BegunExperts, NoneIsBegunThatComesInOnePieceOrIsPutTogetherWhenAllHasCome) {
  const BegunAnswer unpacked = Run(4_KiB, 1);
  EXPECT_TRUE(IsAsResident(unpacked));
  Pack();
  const BegunAnswer in_one = Run(1_MiB, 1);
  EXPECT_TRUE(IsAsResident(in_one));
  EXPECT_GT(std::min(unpacked.misses, in_one.misses), 0u);
  EXPECT_EQ(unpacked.begun + in_one.begun, 0u);
}

}  // namespace
}  // namespace troupe
