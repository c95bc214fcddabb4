#include "runtime/answer_digest.h"

#include <xxhash.h>

#include <array>
#include <span>

#include "runtime/arithmetic_digest.h"
#include "runtime/session.h"

namespace troupe {
namespace {

constexpr std::array<TokenId, 2> kRead = {1, 2};
constexpr std::array<TokenId, 1> kGenerated = {3};

std::uint64_t HashLogits(std::span<const float> logits, std::uint64_t seed) {
  return XXH3_64bits_withSeed(logits.data(), logits.size_bytes(), seed);
}

}  // namespace

Result<std::uint64_t> AnswerDigest(Engine& engine) {
  if (engine.config().encoder) {
    return Error(Code::kUnimplemented,
                 "{}: an encoder-decoder, whose requests no end and cloud share", engine.path());
  }
  TROUPE_ASSIGN_OR_RETURN(std::uint64_t digest, ArithmeticDigest(engine));
  TROUPE_ASSIGN_OR_RETURN(Session session,
                          Session::Create(engine, kRead.size() + kGenerated.size()));
  const auto feed = [&](std::span<const TokenId> tokens, Phase phase) -> Status {
    const SequenceRows rows{.sequence = &session, .tokens = tokens, .phase = phase, .exact = true};
    TROUPE_RETURN_IF_ERROR(engine.Run({&rows, 1}));
    digest = HashLogits(session.logits(), digest);
    return OkStatus();
  };
  TROUPE_RETURN_IF_ERROR(feed(kRead, Phase::kPrompt));
  TROUPE_RETURN_IF_ERROR(feed(kGenerated, Phase::kDecode));
  return digest;
}

}  // namespace troupe
