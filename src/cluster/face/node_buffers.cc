#include "cluster/face/node_buffers.h"

#include <algorithm>

namespace troupe {
namespace {

constexpr Bytes kTransport = 24_MiB;     // gRPC's own
constexpr std::size_t kSmall = 1 << 20;  // plans, holdings, and what else is short

// The rows of a pass once, and which expert wants which of them.
std::size_t AskBytes(const ModelConfig& config, std::uint32_t rows) {
  return rows * (config.width * sizeof(float) + config.moe.routing.top_k * sizeof(std::uint16_t)) +
         config.moe.routing.experts * 2 * sizeof(std::uint16_t);
}

// Each row once for each expert that it chose.
std::size_t AnswersBytes(const ModelConfig& config, std::uint32_t rows) {
  return rows * config.moe.routing.top_k * config.width * sizeof(float);
}

}  // namespace

NodeBuffers BuffersFor(const ModelConfig& config, std::uint32_t rows) {
  const std::size_t ask = AskBytes(config, rows), answers = AnswersBytes(config, rows);
  const std::size_t frame = std::max(4 * kSmall, ask + kSmall);
  return {.frame = frame,
          .unread = answers + kSmall,
          .waiting = 2 * ask + kSmall,
          .unsent = std::max(frame, answers / 2 + kSmall),
          .received = std::max(16 * kSmall, 4 * frame)};
}

Bytes NodeMemory(const ModelConfig& config, std::uint32_t rows) {
  const NodeBuffers buffers = BuffersFor(config, rows);
  // A call that is sent, and one of a peer that is computed; a layer's answers as they are used.
  const std::size_t used = 2 * buffers.frame + AnswersBytes(config, rows);
  return kTransport +
         Bytes(buffers.unread + buffers.waiting + 2 * buffers.unsent + buffers.received + used);
}

}  // namespace troupe
