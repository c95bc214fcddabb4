#include "lab/head_guesses.h"

#include <memory>
#include <utility>

#include "base/clock.h"
#include "runtime/session.h"
#include "text/draft/model_drafter.h"

namespace troupe {
namespace {

using Tokens = std::vector<TokenId>;

// One answer, guessed at each token.
class GuessedAnswer {
 public:
  GuessedAnswer(Session& session, std::unique_ptr<DraftSequence> head, const Sampling& sampling,
                const HeadGuessOptions& options, HeadGuesses& found)
      : session_(session),
        options_(options),
        sampler_(Sampler::Make(sampling).value()),
        drafter_(std::move(head), {.sampling = sampling}, draft_scratch_, DraftSource::kHead),
        found_(found) {}

  Status Write(const Tokens& prompt) {
    TROUPE_RETURN_IF_ERROR(session_.FeedPrompt(prompt));
    logits_.assign(session_.logits().begin(), session_.logits().end());
    Take(prompt, Drafter::Part::kPrompt);
    for (std::size_t i = 0; i < options_.tokens; ++i) {
      TROUPE_ASSIGN_OR_RETURN(const TokenId token,
                              sampler_.Sample(logits_, text_.size(), session_.sampler_scratch()));
      Take({token}, Drafter::Part::kAnswer);
      Tokens draft = Guess();
      const bool is_whole = draft.size() == options_.length;
      // In turn, so that both are timed on the same text.
      TROUPE_RETURN_IF_ERROR(is_whole && i % 2 == 1 ? Check(token, draft) : Pass(token));
      drafts_.push_back(std::move(draft));
    }
    Count(prompt.size());
    return OkStatus();
  }

 private:
  void Take(const Tokens& tokens, Drafter::Part part) {
    text_.insert(text_.end(), tokens.begin(), tokens.end());
    for (const TokenId token : tokens) sampler_.Accept(token);
    drafter_.Append(tokens, part);
  }

  Tokens Guess() {
    const Stopwatch watch;
    Tokens draft = drafter_.Propose(options_.length).tokens;
    if (drafts_.empty()) return draft;  // it has read the prompt, once for all
    found_.draft_seconds += watch.Seconds();
    ++found_.drafts;
    return draft;
  }

  Status Pass(TokenId token) {
    const Stopwatch watch;
    TROUPE_RETURN_IF_ERROR(session_.Feed({&token, 1}));
    logits_.assign(session_.logits().begin(), session_.logits().end());
    found_.plain_seconds += watch.Seconds();
    ++found_.plain;
    return OkStatus();
  }

  // As far as the draft is right; then all of it is forgotten, as the next token is timed anew.
  Status Check(TokenId token, const Tokens& draft) {
    Tokens fed = {token};
    fed.insert(fed.end(), draft.begin(), draft.end());
    const Stopwatch watch;
    TROUPE_RETURN_IF_ERROR(session_.FeedWithGuesses(fed, static_cast<std::uint32_t>(draft.size())));
    Sampler ahead = sampler_;
    for (std::size_t right = 0;; ++right) {
      const std::span<const float> said = session_.LogitsAfterGuesses(right);
      if (right == 0) logits_.assign(said.begin(), said.end());
      if (right == draft.size()) break;
      TROUPE_ASSIGN_OR_RETURN(const TokenId next,
                              ahead.Sample(said, text_.size() + right, session_.sampler_scratch()));
      if (next != draft[right]) break;
      ahead.Accept(next);
    }
    session_.KeepGuesses(0);
    found_.check_seconds += watch.Seconds();
    ++found_.checks;
    return OkStatus();
  }

  // drafts_[i] stands behind token `prompt` + i of the text.
  void Count(std::size_t prompt) {
    found_.tokens += drafts_.size();
    for (std::size_t i = 0; i < drafts_.size(); ++i) {
      for (std::size_t k = 0; k < drafts_[i].size(); ++k) {
        const std::size_t at = prompt + i + 1 + k;
        if (at == text_.size()) break;
        ++found_.tried[k];
        if (drafts_[i][k] != text_[at]) break;
        ++found_.right[k];
      }
    }
  }

  Session& session_;
  const HeadGuessOptions& options_;
  Sampler sampler_;
  SamplerScratch draft_scratch_;
  ModelDrafter drafter_;
  HeadGuesses& found_;
  Tokens text_;
  std::vector<float> logits_;  // of what follows the text
  std::vector<Tokens> drafts_;
};

}  // namespace

double HeadGuesses::TokensPerCheck() const {
  double expected = 1, odds = 1;
  for (std::size_t k = 0; k < tried.size() && tried[k] > 0; ++k) {
    odds *= static_cast<double>(right[k]) / static_cast<double>(tried[k]);
    expected += odds;
  }
  return expected;
}

Result<HeadGuesses> GuessByHead(Engine& engine, const std::vector<Tokens>& prompts,
                                const HeadGuessOptions& options,
                                const std::function<void(std::size_t done)>& progress) {
  HeadGuesses found;
  found.tried.resize(options.length);
  found.right.resize(options.length);
  Sampling sampling = options.sampling;
  for (std::size_t i = 0; i < prompts.size(); ++i, ++sampling.seed) {
    TROUPE_ASSIGN_OR_RETURN(Session session, Session::Create(engine));
    std::unique_ptr<DraftSequence> head = engine.DraftByHead(session);
    if (head == nullptr || session.MostGuesses() < options.length) {
      return InvalidArgument("{}: this engine checks no {} guesses of a head of the model's",
                             engine.path(), options.length);
    }
    GuessedAnswer answer(session, std::move(head), sampling, options, found);
    TROUPE_RETURN_IF_ERROR(answer.Write(prompts[i]));
    if (progress) progress(i + 1);
  }
  return found;
}

}  // namespace troupe
