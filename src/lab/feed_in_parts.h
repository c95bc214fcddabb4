// Feeds tokens in groups of n, as a batch of n would arrive, to score them as decoding would.
#pragma once

#include <algorithm>
#include <cstddef>

#include "runtime/session.h"

namespace troupe {

// As FeedForLogits, at most `together` tokens in a pass.
inline Status FeedInParts(Session& session, TokenIds tokens, std::size_t together,
                          std::size_t first, Phase phase, const Session::RowVisitor& row) {
  for (std::size_t at = 0; at < tokens.size(); at += together) {
    TROUPE_RETURN_IF_ERROR(session.FeedForLogits(
        tokens.subspan(at, std::min(together, tokens.size() - at)), first > at ? first - at : 0,
        phase, [&](std::size_t i, std::span<const float> logits) { row(at + i, logits); }));
  }
  return OkStatus();
}

}  // namespace troupe
