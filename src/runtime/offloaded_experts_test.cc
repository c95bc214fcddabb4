#include "runtime/offloaded_experts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "expert/cache/lru.h"
#include "testing/fake_reader.h"
#include "testing/temp_folder.h"

namespace troupe {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

constexpr std::uint32_t kLayers = 2, kExperts = 4;
constexpr std::size_t kRows = 16, kCols = 64;
constexpr std::byte kLow{0xff};

// Expert e of layer l is one aligned page-multiple of bytes that all say 16 l + e.
class MarkedStore final : public ExpertStore {
 public:
  MarkedStore(DirectFile file, std::uint64_t bytes) : file_(std::move(file)), bytes_(bytes) {}
  std::string_view name() const override { return "marked"; }
  std::span<const DirectFile> files() const override { return {&file_, 1}; }
  bool direct() const override { return true; }
  void Locate(ExpertId id, std::vector<Extent>& extents) const override {
    extents.push_back(
        {.file = 0, .offset = (id.layer * kExperts + id.expert) * bytes_, .bytes = bytes_});
  }
  Status Finish(ExpertId, std::span<const std::span<const std::byte>>,
                std::span<std::byte>) override {
    return OkStatus();
  }

 private:
  DirectFile file_;
  std::uint64_t bytes_;
};

class OffloadedExpertsTest : public testing::Test {
 protected:
  void SetUp() override { Open(3); }

  // With low copies, if allowed, whose bytes say nothing of their expert.
  void Open(std::uint32_t slots, std::unique_ptr<Predictor> predictor = nullptr,
            std::uint32_t depth = 16, const LowCopyOptions& low_copies = {},
            bool in_order = false) {
    experts_.reset();
    const TensorInfo matrix{{"m", TensorType::kF32, {kCols, kRows, kExperts}}};
    const TensorInfo down{{"d", TensorType::kF32, {kRows, kCols, kExperts}}};
    const ExpertLayouts layouts(kLayers, ExpertLayout::For(matrix, matrix, down));
    const std::uint64_t bytes = OffloadedExperts::SlotBytes(layouts).count();
    contents_.clear();
    for (std::uint32_t i = 0; i < kLayers * kExperts; ++i) {
      contents_.insert(contents_.end(), bytes,
                       static_cast<std::byte>(16 * (i / kExperts) + i % kExperts));
    }
    const std::string path = folder_.Write(
        "experts", {reinterpret_cast<const char*>(contents_.data()), contents_.size()});
    auto store = std::make_unique<MarkedStore>(DirectFile::Open(path).value(), bytes);
    auto reader = std::make_unique<FakeReader>(depth);
    reader_ = reader.get();
    reader_->AddFile(store->files()[0].fd(), contents_);
    LowExperts low;
    if (low_copies.any()) {
      low_contents_.assign(contents_.size(), kLow);
      const std::string low_path = folder_.Write(
          "low", {reinterpret_cast<const char*>(low_contents_.data()), low_contents_.size()});
      low.layouts = layouts;
      low.store = std::make_unique<MarkedStore>(DirectFile::Open(low_path).value(), bytes);
      reader_->AddFile(low.store->files()[0].fd(), low_contents_);
    }
    const ExpertGrid grid{.layers = kLayers, .experts = kExperts};
    experts_ = OffloadedExperts::Create(layouts, std::move(store), std::move(reader), pool_, clock_,
                                        {.cache = {.grid = grid, .slots = slots, .quotas = {}},
                                         .policy = std::make_unique<Lru>(grid),
                                         .predictor = std::move(predictor),
                                         .prefetch = {.governed = false},
                                         .loader = {.piece = 4_KiB, .prefetch_piece = 4_KiB},
                                         .low = std::move(low),
                                         .low_copies = low_copies,
                                         .in_order = in_order})
                   .value();
  }

  void Ask(std::uint32_t layer, std::vector<std::uint32_t> experts) {
    layer_ = layer;
    std::vector<ExpertDemand> demands;
    for (const std::uint32_t e : experts) demands.push_back({.expert = e, .tokens = 1});
    experts_->Ask({.layer = layer, .demands = demands});
  }
  // The experts of one Take, after a look at their bytes.
  std::vector<std::uint32_t> Take(bool wait) {
    std::vector<std::uint32_t> experts;
    const std::span<const ReadyExpert> taken = experts_->Take(wait).value();
    for (const ReadyExpert& ready : taken) {
      experts.push_back(ready.expert);
      const auto mark = static_cast<std::byte>(16 * layer_ + ready.expert);
      const Mlp& weights = std::get<Mlp>(ready.answer);
      for (const PanelMatrix& m : {weights.gate, weights.up, weights.down}) {
        EXPECT_TRUE(std::all_of(m.data, m.data + PanelBytes(m.type, m.rows, m.cols),
                                [&](std::byte b) { return b == mark; }));
      }
    }
    return experts;
  }
  std::vector<std::uint32_t> TakeAll(std::size_t count) {
    std::vector<std::uint32_t> experts = Take(false);
    while (experts.size() < count) {
      for (const std::uint32_t e : Take(true)) experts.push_back(e);
    }
    return experts;
  }

  TempFolder folder_;
  ThreadPool pool_{1};
  ManualClock clock_;
  std::vector<std::byte> contents_, low_contents_;
  FakeReader* reader_ = nullptr;
  std::unique_ptr<OffloadedExperts> experts_;
  std::uint32_t layer_ = 0;
};

TEST_F(OffloadedExpertsTest, ResidentExpertsAreGivenAtOnceAndTheOthersAsTheyArrive) {
  Ask(0, {0, 1});
  EXPECT_THAT(TakeAll(2), UnorderedElementsAre(0, 1));
  reader_->Hold(true);
  Ask(0, {0, 2});
  EXPECT_THAT(Take(false), ElementsAre(0));
  EXPECT_THAT(Take(true), ElementsAre(2));
}

TEST_F(OffloadedExpertsTest, MoreExpertsThanSlotsPassThroughThem) {
  Open(2);
  Ask(1, {0, 1, 2, 3});
  EXPECT_THAT(TakeAll(4), UnorderedElementsAre(0, 1, 2, 3));
  EXPECT_EQ(experts_->usage().misses, 4u);
  EXPECT_EQ(experts_->report().cache.evictions, 2u);
}

TEST_F(OffloadedExpertsTest, AnExpertGivenOutIsNotOverwrittenBeforeTheNextCall) {
  Open(2);
  Ask(0, {0, 1});
  TakeAll(2);
  Ask(0, {0, 2, 3});  // 0 is resident and must survive both loads until it was used
  EXPECT_THAT(TakeAll(3), UnorderedElementsAre(0, 2, 3));
}

TEST_F(OffloadedExpertsTest, CountsHitsMissesBytesAndReads) {
  Ask(0, {0, 1});
  TakeAll(2);
  Ask(0, {0, 1, 2});
  TakeAll(3);
  const ExpertUsage usage = experts_->usage();
  EXPECT_EQ(usage.hits, 2u);
  EXPECT_EQ(usage.misses, 3u);
  EXPECT_EQ(usage.bytes_read, reader_->bytes_read());
  EXPECT_EQ(usage.reads, reader_->submitted());
}

TEST_F(OffloadedExpertsTest, CountsAUseForEachTokenOfAQuestion) {
  const ExpertDemand three[] = {{.expert = 0, .tokens = 3}, {.expert = 1, .tokens = 1}};
  experts_->Ask({.layer = 0, .demands = three});
  TakeAll(2);
  const ExpertUsage before = experts_->usage();
  EXPECT_EQ(before.use_hits, 0u);
  EXPECT_EQ(before.use_misses, 4u);
  const ExpertDemand two[] = {{.expert = 0, .tokens = 2}, {.expert = 2, .tokens = 5}};
  experts_->Ask({.layer = 0, .demands = two});
  TakeAll(2);
  const ExpertUsage since = experts_->usage().Since(before);
  EXPECT_EQ(since.use_hits, 2u);
  EXPECT_EQ(since.use_misses, 5u);
  EXPECT_EQ(since.hits, 1u);
}

TEST_F(OffloadedExpertsTest, AFailedLoadFailsTheCallAndLeavesTheRestUsable) {
  bool broken = true;
  reader_->SetScript([&](const ReadRequest&) {
    return broken ? FakeReader::Fault::kError : FakeReader::Fault::kNone;
  });
  Ask(0, {0, 1});
  Result<std::span<const ReadyExpert>> taken = experts_->Take(false);
  if (taken.ok()) taken = experts_->Take(true);
  ASSERT_FALSE(taken.ok());
  EXPECT_THAT(taken.status().message(), HasSubstr("layer 0, expert"));
  broken = false;
  Ask(0, {0, 1});
  EXPECT_THAT(TakeAll(2), UnorderedElementsAre(0, 1));
}

TEST_F(OffloadedExpertsTest, AQuestionCutShortLeavesLoadsThatALaterOneJoins) {
  reader_->Hold(true);
  Ask(0, {0, 1});
  EXPECT_THAT(Take(false), IsEmpty());
  Ask(0, {1, 2});  // nobody took 0 and 1
  EXPECT_THAT(TakeAll(2), UnorderedElementsAre(1, 2));
  EXPECT_EQ(experts_->report().cache.joined, 1u);
  EXPECT_EQ(experts_->loader().stats().loads + experts_->loader().under_way(), 3u);
}

// Guesses one expert of the next layer.
class Always final : public Predictor {
 public:
  std::string_view name() const override { return "always"; }
  void OnChosen(const LayerChoices&) override {}
  std::vector<Guess> Predict(std::uint32_t, std::uint32_t, const GateScores&) override {
    return {{.expert = 3, .weight = 1, .expected = true}};
  }
};

TEST_F(OffloadedExpertsTest, APrefetchThatEndsBetweenTwoLayersIsThereForTheSecond) {
  Open(3, std::make_unique<Always>());
  Ask(0, {0});
  experts_->OnForecast(1, 1, {});
  TakeAll(1);
  for (int i = 0; i < 10; ++i) experts_->Advance();
  Ask(1, {3});
  EXPECT_THAT(Take(false), ElementsAre(3));
  EXPECT_EQ(experts_->usage().prefetch_useful, 1u);
}

TEST_F(OffloadedExpertsTest, APrefetchStillOnItsWayIsJoined) {
  Open(3, std::make_unique<Always>());
  Ask(0, {0});
  experts_->OnForecast(1, 1, {});
  TakeAll(1);
  reader_->Hold(true);
  Ask(1, {3});
  EXPECT_THAT(TakeAll(1), ElementsAre(3));
  EXPECT_EQ(experts_->usage().prefetch_useful + experts_->usage().prefetch_late, 1u);
}

TEST_F(OffloadedExpertsTest, WhatAPromptReadsAheadIsCalledOffWhereTheLayerAsksForOthers) {
  Open(3, std::make_unique<Always>(), 2);
  experts_->OnPassBegins(
      OneGroup(0, Phase::kPrompt, 8));  // enough rows to make every guess nearly certain
  reader_->Hold(true);
  Ask(0, {0});
  experts_->OnForecast(1, 1, {});
  EXPECT_THAT(Take(false), IsEmpty());  // two of its three reads are under way
  EXPECT_EQ(experts_->usage().prefetches, 1u);
  Ask(1, {2});
  EXPECT_EQ(experts_->usage().prefetch_cancelled, 1u);
  EXPECT_EQ(experts_->loader().stats().cancelled, 1u);
  reader_->Hold(false);
  EXPECT_THAT(TakeAll(1), ElementsAre(2));
}

TEST_F(OffloadedExpertsTest, InOrderOneThatHoldsTheOnlySlotGoesBeforeItsTurn) {
  Open(1, std::make_unique<Always>(), 16, {}, /*in_order=*/true);
  Ask(0, {0});
  experts_->OnForecast(1, 1, {});
  TakeAll(1);
  reader_->Hold(true);
  EXPECT_THAT(Take(false), IsEmpty());  // lets go of the slot, which is read ahead into
  Ask(1, {1, 3});
  EXPECT_EQ(experts_->usage().misses, 3u);
  EXPECT_THAT(TakeAll(2), ElementsAre(3, 1));
  EXPECT_EQ(experts_->given_out_of_turn(), 1u);
}

// Predicts that few tokens will want expert 3.
class FewWant3 final : public Predictor {
 public:
  std::string_view name() const override { return "few want 3"; }
  void OnChosen(const LayerChoices&) override {}
  std::vector<Guess> Predict(std::uint32_t, std::uint32_t, const GateScores&) override {
    return {{.expert = 0, .weight = 9, .expected = true},
            {.expert = 3, .weight = 1, .expected = true}};
  }
};

TEST_F(OffloadedExpertsTest, OneReadAheadInItsLowCopyThatManyWantIsReadAgain) {
  Open(4, std::make_unique<FewWant3>(), 16, {.prefill_share = 0.3});
  experts_->OnPassBegins(OneGroup(0, Phase::kPrompt, 8));
  Ask(0, {1});
  TakeAll(1);
  reader_->Hold(true);
  experts_->OnForecast(1, 1, {});
  EXPECT_THAT(Take(false), IsEmpty());  // both are on their way
  EXPECT_EQ(experts_->usage().prefetches, 2u);
  layer_ = 1;
  const std::vector<ExpertDemand> demands = {{.expert = 3, .tokens = 7},
                                             {.expert = 0, .tokens = 1}};
  experts_->Ask({.layer = 1, .demands = demands});
  EXPECT_THAT(TakeAll(2), UnorderedElementsAre(0, 3));  // and 3 has the bytes of its full copy
  EXPECT_EQ(experts_->begun_anew(), 1u);
}

TEST_F(OffloadedExpertsTest, TellsOfEachMissOnce) {
  std::vector<MissEvent> events;
  experts_->set_miss_observer([&](const MissEvent& event) { events.push_back(event); });
  Ask(0, {0, 1, 2});
  TakeAll(3);
  Ask(0, {1});
  TakeAll(1);
  Ask(1, {3});
  TakeAll(1);
  ASSERT_EQ(events.size(), 4u);
  EXPECT_EQ(events.back().id, (ExpertId{1, 3}));
  EXPECT_TRUE(events.back().evicted.has_value());
  EXPECT_THAT(ToString(events.back()),
              HasSubstr("layer 1, expert 3: missed by 1 token; answer: load (nothing was "
                        "measured to choose by); slot"));
}

}  // namespace
}  // namespace troupe
