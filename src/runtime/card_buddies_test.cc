// The device's substitution against the policy's, slot by slot and count by count.
#include <gmock/gmock.h>

#include <optional>
#include <string>

#include "gpu/forwarding_gpu_for_test.h"
#include "gpu/gpu_for_test.h"
#include "runtime/card_buddies_for_test.h"
#include "testing/test_seed.h"
#include "trace/trace_reader.h"

namespace troupe {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// What a policy has counted, as the device counts.
GpuBuddies::Counts CountsOf(const Buddies& policy) {
  const auto& gates = policy.gates().count();
  const Buddies::Counts& own = policy.count();
  GpuBuddies::Counts counts{};
  std::size_t at = 0;
  for (const std::uint64_t count :
       {gates.beta_closed, gates.tau_closed, gates.gamma_closed, own.rho_closed, own.no_list,
        own.none_resident, own.substituted}) {
    counts[at++] = static_cast<std::uint32_t>(count);
  }
  return counts;
}

class CardBuddiesTest : public GpuTest {
 protected:
  void SetUp() override {
    GpuTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    auto made = GpuBuddies::Create(device());
    if (made.status().code() == Code::kUnimplemented) GTEST_SKIP() << made.status().message();
    buddies_.emplace(std::move(made).value());
  }

  // Of the layer, by both; adds the policy's counts to counts_.
  void ExpectThePolicysAnswers(const LayerForTest& layer,
                               const std::shared_ptr<const BuddyLists>& lists,
                               const Buddies::Options& options) {
    auto policy = std::make_unique<Buddies>(lists, options);
    const Buddies& watched = *policy;
    std::vector<std::unique_ptr<SubstitutionPolicy>> links;
    links.push_back(std::move(policy));
    SubstitutionChain chain(std::move(links), {.most_tokens = kNoLimit});
    const RoutedLayer view = layer.View();
    const std::vector<std::uint32_t> expected = ExpertsOf(chain.Answer(view));
    const GpuBuddies::Counts its_counts = CountsOf(watched);
    for (std::size_t i = 0; i < counts_.size(); ++i) counts_[i] += its_counts[i];

    const RoutedForCard routed(layer);
    ASSERT_TRUE(buddies_->SetTokens(routed.View()).ok());
    const auto ended = buddies_->Answer(RulesFor(options, layer.layer), {});
    ASSERT_TRUE(ended.ok()) << ended.status().ToString();
    std::vector<std::uint32_t> answers(expected.size());
    ASSERT_TRUE(buddies_->Read(answers).ok());
    ASSERT_EQ(answers, expected) << watched.ToString();
  }

  static Buddies::Options RandomOptions(Rng& rng) {
    Buddies::Options options{.gates = {.tau = -1}};
    if (rng.Below(2) == 0) options.gates.tau = rng.Uniform();
    if (rng.Below(3) == 0) options.gates.temperature = 0.25 + 3 * rng.Uniform();
    if (rng.Below(3) == 0) options.gates.gamma = rng.Uniform() / 2;
    if (rng.Below(3) == 0) options.gates.beta = rng.Uniform();
    if (rng.Below(4) == 0) options.gates.budget = static_cast<std::uint32_t>(rng.Below(6));
    options.rho = rng.Below(2) == 0 ? kNoLimit : static_cast<std::uint32_t>(rng.Below(4));
    options.rank = static_cast<std::uint32_t>(rng.Below(20));
    if (rng.Below(2) == 0) options.eta = 4 * rng.Uniform();
    options.best_first = rng.Below(2) == 0;
    return options;
  }

  std::optional<GpuBuddies> buddies_;
  GpuBuddies::Counts counts_{};
};

TEST_F(CardBuddiesTest, DecideAsThePolicyDoesOnThreeThousandRandomLayers) {
  Rng rng(TestSeed());
  for (int round = 0; round < 3000; ++round) {
    // Small ones have ties and slots that want the same buddy, large ones many groups of items.
    const bool large = round % 10 == 0;
    const auto experts = static_cast<std::uint32_t>(60 + rng.Below(200));
    LayerForTest layer =
        large ? RoutedTokens(rng, experts, 8, 1 + rng.Below(24), rng.Below(200)) : RandomLayer(rng);
    if (rng.Below(4) == 0) layer.scores.clear();
    const auto lists = RandomBuddies(rng, layer.experts, layer.top_k, large ? 400 : 12);
    ASSERT_TRUE(buddies_->SetLists(ListsFor(*lists)).ok());
    ASSERT_NO_FATAL_FAILURE(ExpectThePolicysAnswers(layer, lists, RandomOptions(rng)))
        << "round " << round;
  }
  EXPECT_EQ(buddies_->counts().value(), counts_);
  // Each gate and each end of a slot's search was met.
  for (const std::uint32_t count : counts_) EXPECT_GT(count, 50u);
}

TEST_F(CardBuddiesTest, ASlotWhoseTurnIsLaterGivesWayAndGoesDownItsList) {
  // All want 3, then 4, then 5; the item of the first slot asks first on a driver that runs items
  // one after the other, and its turn is the last.
  LayerForTest layer = RoutedByScores({{0.3f, 0.25f, 0.2f, 0.1f, 0.08f, 0.07f}}, 3, {3, 4, 5});
  auto lists = std::make_shared<BuddyLists>();
  lists->grid = {.layers = 1, .experts = 6};
  lists->lists.assign(6, {{3, 0.5f}, {4, 0.3f}, {5, 0.2f}});
  for (std::uint32_t e = 3; e < 6; ++e) lists->lists[e].clear();
  ASSERT_TRUE(buddies_->SetLists(ListsFor(*lists)).ok());
  Buddies::Options options{.gates = {.tau = -1, .beta = 2}, .rho = kNoLimit};
  for (const bool best_first : {false, true}) {
    options.best_first = best_first;
    for (const std::uint32_t rho : {kNoLimit, 2u, 1u, 0u}) {
      options.rho = rho;
      ASSERT_NO_FATAL_FAILURE(ExpectThePolicysAnswers(layer, lists, options));
    }
  }
  options = {.gates = {.tau = -1, .beta = 2}, .rho = kNoLimit};
  ASSERT_NO_FATAL_FAILURE(ExpectThePolicysAnswers(layer, lists, options));
  std::vector<std::uint32_t> answers(3);
  ASSERT_TRUE(buddies_->Read(answers).ok());
  EXPECT_THAT(answers, ElementsAre(5, 4, 3));
}

// Half of the experts are in memory, others at each token. Its first tokens teach the buddies.
TEST_F(CardBuddiesTest, DecideAsThePolicyDoesOnRecordedTraces) {
  for (const char* const name : {"deepseek-v2-lite", "gpt-oss-20b"}) {
    SCOPED_TRACE(name);
    const std::string path =
        std::string(TROUPE_SOURCE_DIR) + "/tests/data/routing/" + name + ".trace";
    TraceReader reader = TraceReader::Open(path).value();
    const TraceHeader& header = reader.header();
    std::vector<TraceBlock> blocks;
    while (std::optional<TraceBlock> block = reader.Next().value()) {
      blocks.push_back(*std::move(block));
    }
    const TraceBlock all = Join(header, blocks);
    Coactivations together(header.grid());
    for (std::uint32_t token = 0; token < all.tokens / 4; ++token) {
      for (std::size_t l = 0; l < header.moe_layers.size(); ++l) {
        const auto ids = all.Ids(header, l, token);
        together.Add(header.moe_layers[l], std::vector<std::uint32_t>(ids.begin(), ids.end()));
      }
    }
    const auto lists = std::make_shared<const BuddyLists>(MakeBuddyLists(together));
    ASSERT_TRUE(buddies_->SetLists(ListsFor(*lists)).ok());
    const std::uint32_t before = counts_[6];
    Rng rng(TestSeed());
    for (std::uint32_t token = all.tokens / 4; token < all.tokens; ++token) {
      for (std::size_t l = 0; l < header.moe_layers.size(); ++l) {
        LayerForTest layer{
            .layer = header.moe_layers[l], .experts = header.experts, .top_k = header.top_k};
        const auto ids = all.Ids(header, l, token);
        const auto scores = all.Scores(header, l, token);
        for (std::uint32_t slot = 0; slot < header.top_k; ++slot) {
          layer.chosen.push_back({ids[slot], scores[slot]});
        }
        for (std::uint32_t e = 0; e < header.experts; ++e) {
          layer.residence.push_back(rng.Below(2) == 0 ? Residence::kAbsent : Residence::kResident);
        }
        ASSERT_NO_FATAL_FAILURE(ExpectThePolicysAnswers(
            layer, lists, {.gates = {.tau = 0.7, .gamma = 0.5, .beta = 0.8}}));
      }
    }
    EXPECT_GT(counts_[6] - before, 100u) << "substituted";
  }
  EXPECT_EQ(buddies_->counts().value(), counts_);
}

class WithoutDoubles final : public ForwardingGpu {
 public:
  explicit WithoutDoubles(GpuDevice& to) : ForwardingGpu(to), info_(to.info()) {
    info_.has_doubles = false;
  }
  const GpuInfo& info() const override { return info_; }

 private:
  GpuInfo info_;
};

TEST_F(CardBuddiesTest, ADeviceWithoutDoublesIsNotAsked) {
  WithoutDoubles device_without(device());
  const Status status = GpuBuddies::Create(device_without).status();
  EXPECT_EQ(status.code(), Code::kUnimplemented);
  EXPECT_THAT(status.message(), HasSubstr("computes with no doubles"));
}

}  // namespace
}  // namespace troupe
