#include "runtime/draft_check.h"

#include <vector>

#include "base/check.h"

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

Result<CheckedDraft> CheckDraft(Session& session, TextGeneration& generation,
                                std::span<const TokenId> draft) {
  TROUPE_CHECK(!draft.empty() && draft.size() <= generation.MostGuesses() &&
               draft.size() <= session.MostGuesses());
  const std::span<const TokenId> sure = generation.NextTokens(1);
  std::vector<TokenId> fed(sure.begin(), sure.end());
  fed.insert(fed.end(), draft.begin(), draft.end());
  const auto drafted = static_cast<std::uint32_t>(draft.size());
  TROUPE_RETURN_IF_ERROR(session.FeedWithGuesses(fed, drafted));
  const LogitsAfter logits = [&](std::size_t guesses) {
    return session.LogitsAfterGuesses(guesses);
  };
  const std::uint32_t right = AcceptGuesses(generation, draft, logits, session.sampler_scratch());
  session.KeepGuesses(right);
  return CheckedDraft{.drafted = drafted, .right = right};
}

}  // namespace troupe
