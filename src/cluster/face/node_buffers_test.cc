#include "cluster/face/node_buffers.h"

#include <gtest/gtest.h>

#include "cluster/face/transport_options.h"

namespace troupe {
namespace {

ModelConfig Config(std::uint32_t width, std::uint32_t experts, std::uint32_t top_k) {
  ModelConfig config;
  config.width = width;
  config.moe.routing.experts = experts;
  config.moe.routing.top_k = top_k;
  return config;
}

TEST(NodeBuffers, APassFitsAndAskingForAllOfItDoes) {
  for (const ModelConfig& config : {Config(64, 4, 2), Config(2048, 64, 8), Config(7168, 256, 8)}) {
    const NodeBuffers buffers = BuffersFor(config);
    const std::size_t rows = kMostRowsAsked * config.width * sizeof(float);
    EXPECT_GT(buffers.frame, rows);
    EXPECT_GT(buffers.unread, rows * config.moe.routing.top_k);
    EXPECT_GT(buffers.waiting, 2 * rows);
    EXPECT_TRUE(CheckTransportOptions({.most_frame = buffers.frame,
                                       .most_unsent = buffers.unsent,
                                       .most_buffered = buffers.received})
                    .ok());
  }
}

TEST(NodeBuffers, TheMemoryOfANodeHoldsAllOfThem) {
  const ModelConfig config = Config(2048, 64, 8);
  const NodeBuffers buffers = BuffersFor(config);
  const Bytes memory = NodeMemory(config);
  EXPECT_GT(memory,
            Bytes(buffers.unread + buffers.waiting + 2 * buffers.unsent + buffers.received));
  EXPECT_LT(memory, 200_MiB);  // of OLMoE's shape
}

}  // namespace
}  // namespace troupe
