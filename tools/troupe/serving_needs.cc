#include "troupe/serving_needs.h"

#include <algorithm>
#include <bit>

#include "api/answer_rules.h"
#include "cluster/face/node_buffers.h"
#include "server/answer_size.h"
#include "server/cut_host.h"
#include "server/http/http_reply.h"
#include "server/request_memory.h"

namespace troupe {
namespace {

// A body is read as values that take more (kMostBodyValues), one at a time. Of a longer one the
// texts are there once more, and again where they are copied out.
constexpr Bytes kBodyValues = 12_MiB;
Bytes ValuesOfLongest(Bytes longest) {
  return kBodyValues + 2 * (std::max(longest, kUsualBody) - kUsualBody);
}
// Beside it a small one may be: what is joined into tokens takes 116 bytes for each of its own, and
// its text is there three times.
constexpr Bytes kOfSmallBody = kSmallBodyBytes * 128_B;
// An answer that is not streamed is put together twice as it ends, one at a time, and may be half
// as long again as what was set aside for it.
constexpr Bytes kOfWholeAnswer = Bytes(kMostAnswerBytes * 3);
// A connection with a request that waits took 22 KiB (bench/serve idle).
constexpr Bytes kOfConnection = 24_KiB;
// With TLS 84 KiB: OpenSSL and Asio have buffers of their own (bench/serve idle).
constexpr Bytes kOfConnectionWithTls = 96_KiB;

// An answer that is in the cloud: a connection with TLS and its text, and until the cloud has
// answered its prompt as JSON, of which a token takes 7 bytes at most.
constexpr Bytes kOfCloudAnswer = 96_KiB, kOfTokenInJson = 8_B;
constexpr Bytes kOfCloud = 2_MiB;  // a thread, and what TLS keeps for all

// Of those that wait a quarter may be as long as the context, and no more than this.
constexpr std::size_t kMostLongPrompts = 64;

}  // namespace

Bytes HeldOfBodies(Bytes longest) {
  const std::uint64_t place = std::bit_ceil(std::max(longest, kUsualBody).count());
  return Bytes(place + place / 2) + 1_MiB;
}

void PlanForServing(const ServingNeeds& needs, Bytes held, EngineFlags& engine) {
  engine.HoldSequences(needs.parallel);
  if (needs.has_peers) engine.TakesExpertsForPeers(kExpertsFetched);
  engine.Serves([needs, held, kv = engine.options().kv_type](const ModelConfig& config,
                                                             std::uint32_t context) {
    const Bytes server = HeldOfBodies(needs.longest_body) + kUnreadByClients +
                         ValuesOfLongest(needs.longest_body) + kOfSmallBody + kOfWholeAnswer +
                         needs.connections * (needs.tls ? kOfConnectionWithTls : kOfConnection);
    const Bytes cloud = needs.has_cloud ? kOfCloud + MostInCloud(needs.parallel, needs.queue) *
                                                         (kOfCloudAnswer + context * kOfTokenInJson)
                                        : Bytes();
    const std::uint64_t prompts = needs.parallel + std::min(needs.queue / 4, kMostLongPrompts);
    return ServingMemory{.connections = server - std::min(server, held) + cloud,
                         .rules = AnswerRules::MostBytes(config.vocabulary, needs.parallel),
                         .peers = needs.has_peers ? NodeMemory(config) : Bytes(),
                         .requests = kKeptByRequests + prompts * context * Bytes(sizeof(TokenId)),
                         .cuts = needs.fitted_bases +
                                 CutBytesOfEnd(config, needs.cuts, kv, context) +
                                 CutHost::BytesFor(config, needs.cut_tokens_of_cloud, kv, context)};
  });
}

}  // namespace troupe
