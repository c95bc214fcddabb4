// OffloadedExperts over a file in which every expert's bytes say which expert it is, and a reader
// that does what a test says.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "expert/cache/lru.h"
#include "runtime/offloaded_experts.h"
#include "testing/fake_reader.h"
#include "testing/temp_folder.h"

namespace troupe {

inline constexpr std::uint32_t kMarkedLayers = 2, kMarkedExperts = 4;
inline constexpr std::size_t kMarkedRows = 16, kMarkedCols = 64;

// Expert e of layer l is one aligned page-multiple of bytes that all say 16 l + e.
class MarkedStore final : public ExpertStore {
 public:
  MarkedStore(DirectFile file, std::uint64_t bytes) : file_(std::move(file)), bytes_(bytes) {}
  std::string_view name() const override { return "marked"; }
  std::span<const DirectFile> files() const override { return {&file_, 1}; }
  bool direct() const override { return true; }
  void Locate(ExpertId id, std::vector<Extent>& extents) const override {
    extents.push_back(
        {.file = 0, .offset = (id.layer * kMarkedExperts + id.expert) * bytes_, .bytes = bytes_});
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
    const TensorInfo matrix{{"m", TensorType::kF32, {kMarkedCols, kMarkedRows, kMarkedExperts}}};
    const TensorInfo down{{"d", TensorType::kF32, {kMarkedRows, kMarkedCols, kMarkedExperts}}};
    const ExpertLayouts layouts(kMarkedLayers, ExpertLayout::For(matrix, matrix, down));
    const std::uint64_t bytes = OffloadedExperts::SlotBytes(layouts).count();
    contents_.clear();
    for (std::uint32_t i = 0; i < kMarkedLayers * kMarkedExperts; ++i) {
      contents_.insert(contents_.end(), bytes,
                       static_cast<std::byte>(16 * (i / kMarkedExperts) + i % kMarkedExperts));
    }
    const std::string path = folder_.Write(
        "experts", {reinterpret_cast<const char*>(contents_.data()), contents_.size()});
    auto store = std::make_unique<MarkedStore>(DirectFile::Open(path).value(), bytes);
    auto reader = std::make_unique<FakeReader>(depth);
    reader_ = reader.get();
    reader_->AddFile(store->files()[0].fd(), contents_);
    LowExperts low;
    if (low_copies.any()) {
      low_contents_.assign(contents_.size(), std::byte{0xff});
      const std::string low_path = folder_.Write(
          "low", {reinterpret_cast<const char*>(low_contents_.data()), low_contents_.size()});
      low.layouts = layouts;
      low.store = std::make_unique<MarkedStore>(DirectFile::Open(low_path).value(), bytes);
      reader_->AddFile(low.store->files()[0].fd(), low_contents_);
    }
    const ExpertGrid grid{.layers = kMarkedLayers, .experts = kMarkedExperts};
    experts_ = OffloadedExperts::Create(layouts, std::move(store), std::move(reader), pool_, clock_,
                                        {.cache = {.grid = grid, .slots = slots, .quotas = quotas_},
                                         .policy = std::make_unique<Lru>(grid),
                                         .predictor = std::move(predictor),
                                         .prefetch = {.governed = false},
                                         .loader = {.piece = 4_KiB, .prefetch_piece = 4_KiB},
                                         .costs = costs_,
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
  MeasuredCosts costs_;                // that Open gives it,
  std::vector<std::uint32_t> quotas_;  // and these
  FakeReader* reader_ = nullptr;
  std::unique_ptr<OffloadedExperts> experts_;
  std::uint32_t layer_ = 0;
};

}  // namespace troupe
