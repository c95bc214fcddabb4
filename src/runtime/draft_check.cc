#include "runtime/draft_check.h"

namespace troupe {

std::uint32_t AcceptGuesses(TextGeneration& generation, std::span<const TokenId> draft,
                            const LogitsAfter& logits, SamplerScratch& scratch) {
  std::uint32_t right = 0;
  while (!generation.ended()) {
    const std::size_t before = generation.answer().tokens.size();
    (void)generation.Accept(logits(right), scratch);
    const std::span<const TokenId> tokens = generation.answer().tokens;
    // The last token of an answer is fed to nobody, so it does not stay either.
    if (generation.ended() || tokens.size() == before || right == draft.size()) break;
    if (tokens.back() != draft[right]) break;
    ++right;
  }
  return right;
}

}  // namespace troupe
