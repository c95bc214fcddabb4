#include "lab/closed_loop.h"

#include <algorithm>

#include "kernels/elementwise.h"
#include "lab/evaluation.h"

namespace troupe {
namespace {

// The likeliest tokens, one after the other, as decode makes them.
Status Generate(Session& session, std::span<const TokenId> prompt, std::size_t tokens,
                std::vector<TokenId>& text) {
  session.Truncate(0);
  TROUPE_RETURN_IF_ERROR(session.FeedPrompt(prompt));
  while (true) {
    text.push_back(static_cast<TokenId>(ArgMax(session.logits().data(), session.logits().size())));
    if (text.size() == tokens) return OkStatus();
    TROUPE_RETURN_IF_ERROR(session.Feed(std::span(text).last(1)));
  }
}

// Nats a token of a text after its prompt.
Result<double> Nll(Session& session, std::span<const TokenId> prompt,
                   std::span<const TokenId> text) {
  session.Truncate(0);
  std::vector<TokenId> fed(prompt.begin(), prompt.end());
  fed.insert(fed.end(), text.begin(), text.end() - 1);
  double sum = 0;
  const std::size_t first = prompt.size() - 1;
  TROUPE_RETURN_IF_ERROR(session.FeedForLogits(
      fed, first, Phase::kPrompt, [&](std::size_t i, std::span<const float> logits) {
        sum -= LogProbability(logits, static_cast<std::size_t>(text[i - first]));
      }));
  return sum / static_cast<double>(text.size());
}

}  // namespace

void NoteSame(LoopAnswer& answer) {
  TROUPE_CHECK(answer.exact.size() == answer.lossy.size());
  answer.first_change = static_cast<std::size_t>(
      std::ranges::mismatch(answer.exact, answer.lossy).in1 - answer.exact.begin());
  answer.same = 0;
  for (std::size_t i = 0; i < answer.exact.size(); ++i) {
    answer.same += answer.exact[i] == answer.lossy[i];
  }
}

Result<LoopComparison> CompareInTheLoop(Session& session, LossySwitch& experts,
                                        const std::vector<std::vector<TokenId>>& prompts,
                                        const LoopOptions& options,
                                        const std::function<void(std::size_t done)>& progress) {
  session.Truncate(0);
  TROUPE_CHECK(options.tokens > 0);
  LoopComparison found;
  BlockMean same(1), first_change(1), exact_nll(1), lossy_nll(1), change(1);
  for (const std::vector<TokenId>& prompt : prompts) {
    TROUPE_CHECK(!prompt.empty());
    LoopAnswer answer;
    experts.SetExact(false);
    const ExpertUsage before = session.expert_usage();
    TROUPE_RETURN_IF_ERROR(Generate(session, prompt, options.tokens, answer.lossy));
    found.usage += session.expert_usage().Since(before);
    experts.SetExact(true);
    TROUPE_RETURN_IF_ERROR(Generate(session, prompt, options.tokens, answer.exact));
    TROUPE_ASSIGN_OR_RETURN(answer.lossy_nll, Nll(session, prompt, answer.lossy));
    TROUPE_ASSIGN_OR_RETURN(answer.exact_nll, Nll(session, prompt, answer.exact));
    NoteSame(answer);
    const auto tokens = static_cast<double>(options.tokens);
    found.unchanged += answer.same == options.tokens;
    same.Add(static_cast<double>(answer.same) / tokens);
    first_change.Add(static_cast<double>(answer.first_change));
    exact_nll.Add(answer.exact_nll);
    lossy_nll.Add(answer.lossy_nll);
    change.Add(answer.lossy_nll - answer.exact_nll);
    found.answers.push_back(std::move(answer));
    if (progress) progress(found.answers.size());
  }
  found.same_tokens = same.Get();
  found.first_change = first_change.Get();
  found.exact_nll = exact_nll.Get();
  found.lossy_nll = lossy_nll.Get();
  found.nll_change = change.Get();
  return found;
}

Result<std::vector<std::vector<TokenId>>> PromptsFrom(std::span<const TokenId> text,
                                                      std::size_t count, std::size_t length,
                                                      std::optional<TokenId> begin) {
  if (count == 0 || length == 0 || text.size() / count < length) {
    return InvalidArgument("the text has {} tokens, expected {} for {} prompts of {}", text.size(),
                           count * length, count, length);
  }
  std::vector<std::vector<TokenId>> prompts(count);
  for (std::size_t i = 0; i < count; ++i) {
    const std::span<const TokenId> part = text.subspan(i * (text.size() / count), length);
    if (begin) prompts[i].push_back(*begin);
    prompts[i].insert(prompts[i].end(), part.begin(), part.end());
  }
  return prompts;
}

}  // namespace troupe
