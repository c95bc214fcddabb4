// For tests: an answer written on a session alone, one token a pass. What batches, drafts and
// caches must give, too.
#pragma once

#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "base/clock.h"
#include "runtime/generation.h"
#include "runtime/session.h"

namespace troupe {

// Behind what the session holds; afterwards it holds prompt and answer, but for the last token.
inline Answer PlainAnswer(Session& session, const Tokenizer& tokenizer,
                          const std::vector<TokenId>& prompt, const GenerateOptions& options) {
  const ManualClock clock;
  TextGeneration generation =
      TextGeneration::Make(tokenizer, prompt, options, {.capacity = session.room()}, clock).value();
  EXPECT_TRUE(session.FeedPrompt(prompt).ok());
  generation.Read(prompt.size());
  while (!generation.ended()) {
    if (const auto next = generation.NextTokens(1); !next.empty()) {
      EXPECT_TRUE(session.Feed(next).ok());
    }
    EXPECT_TRUE(generation.Accept(session.logits(), session.sampler_scratch()).ok());
  }
  return std::move(generation).TakeAnswer();
}

}  // namespace troupe
