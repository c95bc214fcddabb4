// What a node asks its peers for a layer, and all that comes of it, over the nodes of
// two_nodes_for_test.h.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "cluster/two_nodes_for_test.h"
#include "testing/test_seed.h"

namespace troupe {

inline std::vector<AnsweredElsewhere> MissesOf(const std::vector<std::uint32_t>& experts,
                                               std::uint32_t place) {
  std::vector<AnsweredElsewhere> misses;
  for (const std::uint32_t expert : experts) misses.push_back({.expert = expert, .place = place});
  return misses;
}

struct TakenNews {
  std::map<std::uint32_t, std::vector<float>> answered;
  std::vector<std::uint32_t> to_load;
};

// Until nothing is waited for.
inline TakenNews TakeAllNews(PeerCalls& calls) {
  TakenNews had;
  while (calls.waiting()) {
    const ExpertPeers::News news = calls.Take();
    for (const ExpertPeers::Rows& rows : news.answered) {
      had.answered[rows.expert] = {rows.values.begin(), rows.values.end()};
    }
    for (const std::uint32_t expert : news.to_load) {
      had.to_load.push_back(expert);
      calls.OnLoaded(expert);  // by a disk that is quick
    }
    if (calls.waiting()) calls.Wait(std::nullopt);
  }
  return had;
}

class PeerCallsTest : public testing::Test {
 protected:
  void Open(std::size_t hosts) {
    nodes_ = std::make_unique<TwoNodes>(TensorType::kQ4_0, hosts);
    layer_ = std::make_unique<AskedLayer>(nodes_->config(), 1, 6, rng_);
    experts_ = layer_->experts();
    ASSERT_GT(experts_.size(), 3u);
  }
  void Ask(std::uint32_t place = 0) {
    (void)nodes_->calls().Places();
    nodes_->calls().Ask(layer_->batch(), MissesOf(experts_, place));
  }
  void ExpectBytes(const TakenNews& had) {
    for (const auto& [expert, values] : had.answered) {
      EXPECT_EQ(values, nodes_->Alone(*layer_, expert)) << "expert " << expert;
    }
    EXPECT_EQ(had.answered.size() + had.to_load.size(), experts_.size());
  }

  Rng rng_{TestSeed()};
  std::unique_ptr<TwoNodes> nodes_;
  std::unique_ptr<AskedLayer> layer_;
  std::vector<std::uint32_t> experts_;
};

}  // namespace troupe
