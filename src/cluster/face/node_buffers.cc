#include "cluster/face/node_buffers.h"

#include <algorithm>

namespace troupe {
namespace {

constexpr Bytes kTransport = 24_MiB;     // gRPC's own
constexpr std::size_t kSmall = 1 << 20;  // plans, holdings, and what else is short

// The rows of a pass once, and which expert wants which of them.
std::size_t AskBytes(const ModelConfig& config) {
  return kMostRowsAsked *
             (config.width * sizeof(float) + config.moe.routing.top_k * sizeof(std::uint16_t)) +
         config.moe.routing.experts * 2 * sizeof(std::uint16_t);
}

// Each row once for each expert that it chose.
std::size_t AnswersBytes(const ModelConfig& config) {
  return kMostRowsAsked * config.moe.routing.top_k * config.width * sizeof(float);
}

}  // namespace

NodeBuffers BuffersFor(const ModelConfig& config) {
  const std::size_t ask = AskBytes(config), answers = AnswersBytes(config);
  const std::size_t frame = std::max(4 * kSmall, ask + kSmall);
  return {.frame = frame,
          .unread = answers + kSmall,
          .waiting = 2 * ask + kSmall,
          .unsent = std::max(frame, answers / 2 + kSmall),
          .received = std::max(16 * kSmall, 4 * frame)};
}

Bytes NodeMemory(const ModelConfig& config) {
  const NodeBuffers buffers = BuffersFor(config);
  // A call that is sent. One of a peer that is computed: as it came, as floats, and what comes of
  // it twice. A layer's answers as they are used. Answers that are to be checked, those that are
  // being checked, and what comes of those here.
  const std::size_t used =
      buffers.frame + 4 * AskBytes(config) + AnswersBytes(config) + 3 * kMostBytesToCheck + kSmall;
  return kTransport +
         Bytes(buffers.unread + buffers.waiting + 2 * buffers.unsent + buffers.received + used);
}

}  // namespace troupe
