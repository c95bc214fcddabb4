// The next token from the logits. Steps, in this order: tokens that are not allowed leave, bias,
// penalties, DRY, top-k, top-p, min-p, XTC, temperature, draw; or, at temperature 0, the highest
// logit after bias and penalties. Which token it is depends on the logits, the seed, the position
// in the text and the tokens that penalties count, and on nothing that was drawn before: so tokens
// that were guessed can be checked in one pass, and a text that is gone on with elsewhere goes on
// alike. It is the same on every machine: only basic IEEE operations in a fixed order are used, and
// among equal logits the lowest id comes first. The options are request.h's.
#pragma once

#include <troupe/request.h>

#include <deque>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/bytes.h"
#include "base/status.h"
#include "text/dry_penalty.h"
#include "text/token_set.h"
#include "text/vocab.h"

namespace troupe {

Status Validate(const Sampling& sampling);       // kInvalidArgument if a value is out of its range
std::string ToString(const Sampling& sampling);  // "temperature 0.8, top-k 40": without what is off

// A token that may be drawn.
struct SampleCandidate {
  TokenId id;
  float logit;
  double weight = 0;  // probability relative to the best token's, which weighs 1
};

// What drawing a token needs for every token of the vocabulary. Samplers that draw one after the
// other share one; it holds nothing between two draws.
class SamplerScratch {
 public:
  static constexpr Bytes BytesFor(std::size_t vocabulary) {
    return Bytes(vocabulary * sizeof(SampleCandidate));
  }

  // Takes memory for that many tokens; for more it grows.
  explicit SamplerScratch(std::size_t vocabulary = 0) : candidates_(vocabulary) {}

  Bytes size() const { return BytesFor(candidates_.capacity()); }

 private:
  friend class Sampler;
  std::vector<SampleCandidate> candidates_;
};

class Sampler {
 public:
  // `breakers`: the tokens of dry.breakers (dry_penalty.h), where that is on.
  static Result<Sampler> Make(const Sampling& options, TokenSet breakers = TokenSet());

  // The token at this position of the text. Fails on NaN or +infinity, if every token is banned, or
  // on a bias outside the vocabulary. Tokens outside `allowed`, if it is given, count as if their
  // logits were -infinity.
  Result<TokenId> Sample(std::span<const float> logits, std::uint64_t position,
                         SamplerScratch& scratch, const TokenSet* allowed = nullptr) const;

  // Adds a token of the text, sampled or of the prompt; penalties depend on these.
  void Accept(TokenId token);

  const Sampling& options() const { return options_; }

 private:
  using Candidate = SampleCandidate;
  using Candidates = std::vector<SampleCandidate>;

  Sampler(const Sampling& options, TokenSet breakers);

  static Status Load(std::span<const float> logits, Candidates& candidates);
  static void Restrict(const TokenSet& allowed, Candidates& candidates);
  Status AddBiases(Candidates& candidates) const;
  void ApplyPenalties(Candidates& candidates) const;
  void KeepTopK(Candidates& candidates) const;
  void KeepTopPAndMinP(float best, Candidates& candidates) const;
  float ExcludeTopChoices(float best, std::uint64_t position, Candidates& candidates) const;
  TokenId Draw(float best, double uniform, Candidates& candidates) const;

  Sampling options_;
  std::deque<TokenId> recent_;
  std::unordered_map<TokenId, std::uint32_t> recent_count_;
  std::optional<DryPenalty> dry_;
};

}  // namespace troupe
