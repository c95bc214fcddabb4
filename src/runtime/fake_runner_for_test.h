// A PassRunner without an engine: a toy model whose next logits are a function of all tokens of the
// sequence, so that a row fed twice, left out or put into another sequence changes the text. Checks
// what the batcher promises, fails passes on request, and may have a prefix cache.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/rng.h"
#include "runtime/pass_runner.h"

namespace troupe {

class FakeRunner final : public PassRunner {
 public:
  struct Options {
    RunnerLimits limits{.rows = 64, .sequences = 12, .context = 512};
    std::size_t memory = 12 * 512;  // tokens that can be reserved altogether
    std::size_t vocabulary = 256;
    // Whether a pass over these rows fails; called while it is under way.
    std::function<bool(std::span<const PassRows>)> fails = {};
    ManualClock* clock = nullptr;        // moved by a millisecond a row
    std::function<bool()> forgets = {};  // whether the prefix cache loses what nobody holds now
  };

  explicit FakeRunner(Options options) : options_(std::move(options)) {}
  ~FakeRunner() override {
    EXPECT_TRUE(sequences_.empty()) << "a sequence was never released";
    EXPECT_TRUE(not_taken_.empty()) << "what a request has cost was never taken";
  }

  RunnerLimits limits() const override { return options_.limits; }

  RequestId NewRequest() override { return ++last_request_; }
  ExpertUsage EndRequest(RequestId request) override { return TakeUsage(request); }

  std::optional<ReservedSequence> Reserve(const SequenceAsk& ask) override {
    const auto& [prompt, tokens, exact, reads_all, salt, common] = ask;
    EXPECT_LE(tokens, options_.limits.context);
    EXPECT_LE(prompt.size(), tokens);
    EXPECT_LT(sequences_.size(), options_.limits.sequences);
    if (tokens > options_.memory - reserved_) return std::nullopt;
    reserved_ += tokens;
    SequenceId id = 0;
    while (sequences_.contains(id)) ++id;
    sequences_[id] = {
        .reserved = tokens, .exact = exact, .salt = std::string(salt), .tokens = {}, .logits = {}};
    most_together_ = std::max(most_together_, sequences_.size());
    return ReservedSequence{.id = id, .cached = reads_all ? 0 : TakeCached(id, prompt)};
  }

  std::size_t TakeCached(SequenceId id, std::span<const TokenId> prompt) override {
    if (options_.limits.cache_page == 0) return 0;
    if (options_.forgets && options_.forgets()) ended_.clear();
    Sequence& sequence = sequences_.at(id);
    const std::span<const TokenId> wanted = prompt.first(prompt.size() - 1);
    std::size_t known = sequence.tokens.size();
    const auto look = [&](std::span<const TokenId> tokens, const Sequence& other) {
      if (other.exact != sequence.exact || other.salt != sequence.salt) return;
      const auto common = std::ranges::mismatch(wanted, tokens).in1 - wanted.begin();
      known = std::max(known, static_cast<std::size_t>(common));
    };
    for (const Sequence& other : ended_) look(other.tokens, other);
    for (const auto& [key, other] : sequences_) {
      const std::size_t pages = other.tokens.size() / options_.limits.cache_page;
      look(std::span(other.tokens).first(pages * options_.limits.cache_page), other);
    }
    const std::size_t cached = known - sequence.tokens.size();
    sequence.tokens.assign(wanted.begin(), wanted.begin() + static_cast<std::ptrdiff_t>(known));
    return cached;
  }

  void Release(SequenceId id) override {
    reserved_ -= sequences_.at(id).reserved;
    ended_.push_back(std::move(sequences_.at(id)));
    sequences_.erase(id);
  }

  Status Run(std::span<const PassRows> rows) override {
    EXPECT_TRUE(guessed_.empty()) << "guesses that nobody kept or gave up";
    std::set<SequenceId> seen;
    std::size_t count = 0, guessed = 0;
    for (const PassRows& group : rows) {
      const Sequence& sequence = sequences_.at(group.sequence);
      guessed += group.guessed;
      const bool behind_prompt = group.guessed > 0 && group.phase == Phase::kPrompt;
      EXPECT_TRUE(!behind_prompt || options_.limits.guesses_behind_prompts);
      if (const auto start = options_.limits.decoder_start; start && sequence.tokens.empty()) {
        EXPECT_TRUE(std::ranges::count(group.tokens, *start) > 0) << "the encoder's part is cut";
      }
      EXPECT_TRUE(seen.insert(group.sequence).second) << "a sequence twice in a pass";
      EXPECT_GT(group.tokens.size(), group.guessed);
      EXPECT_TRUE(group.guessed == 0 || group.wants_logits);
      EXPECT_LE(sequence.tokens.size() + group.tokens.size(), sequence.reserved);
      count += group.tokens.size();
    }
    EXPECT_LE(count, options_.limits.rows);
    EXPECT_LE(guessed, options_.limits.guesses);
    ++passes_;
    if (options_.clock != nullptr) options_.clock->Advance(static_cast<Nanos>(count) * 1'000'000);
    for (const PassRows& group : rows) {
      ++not_taken_[group.request].reads;
      ++reads_;
    }
    if (options_.fails && options_.fails(rows)) return DataLoss("an expert cannot be read");
    const auto is_unwanted = [](const PassRows& group) {
      return group.unwanted != nullptr && group.unwanted->load();
    };
    if (std::ranges::all_of(rows, is_unwanted)) return Status(Code::kCancelled, "unwanted");
    costs_.clear();
    rows_ += count;
    for (const PassRows& group : rows) {
      Sequence& sequence = sequences_.at(group.sequence);
      for (std::size_t row = 0; row < group.tokens.size(); ++row) {
        sequence.tokens.push_back(group.tokens[row]);
        if (group.on_row) group.on_row(row, LogitsAfter(sequence.tokens));
        if (group.embedding != nullptr) group.embedding->Add(LogitsAfter(sequence.tokens));
      }
      if (group.wants_logits && group.guessed == 0) {
        sequence.logits = LogitsAfter(sequence.tokens);
      }
      costs_.push_back({.expert_uses = group.tokens.size(), .experts = TakeUsage(group.request)});
    }
    const auto has_guesses = [](const PassRows& group) { return group.guessed > 0; };
    if (std::ranges::any_of(rows, has_guesses)) guessed_.assign(rows.begin(), rows.end());
    return OkStatus();
  }

  std::span<const float> LogitsAfterGuesses(std::size_t group, std::size_t guesses) override {
    const std::span<const TokenId> tokens = sequences_.at(guessed_.at(group).sequence).tokens;
    EXPECT_LE(guesses, guessed_[group].guessed);
    checked_ = LogitsAfter(tokens.first(tokens.size() - guessed_[group].guessed + guesses));
    return checked_;
  }
  void KeepGuesses(std::span<const std::uint32_t> right) override {
    ASSERT_EQ(right.size(), guessed_.size());
    for (std::size_t i = 0; i < right.size(); ++i) {
      std::vector<TokenId>& tokens = sequences_.at(guessed_[i].sequence).tokens;
      ASSERT_LE(right[i], guessed_[i].guessed);
      tokens.resize(tokens.size() - guessed_[i].guessed + right[i]);
      guessed_right_ += right[i];
      guessed_wrong_ += guessed_[i].guessed - right[i];
    }
    guessed_.clear();
  }

  std::span<const float> Logits(SequenceId id) const override { return sequences_.at(id).logits; }
  SamplerScratch& sampler_scratch() override { return scratch_; }
  std::span<const RowsCost> costs() const override { return costs_; }

  PrefixCacheState prefix_cache() const override { return {.most = options_.memory}; }
  ExpertMap LookAtExperts() override {
    ++looks_;
    return {.layers = 1, .layer_numbers = {1}, .experts = 2, .places = {}, .heat = {}};
  }

  std::size_t rows() const { return rows_; }  // of passes that did not fail
  std::size_t passes() const { return passes_; }
  std::size_t looks() const { return looks_; }
  std::uint64_t reads() const { return reads_; }  // one for each group of each pass
  std::uint64_t guessed_right() const { return guessed_right_; }
  std::uint64_t guessed_wrong() const { return guessed_wrong_; }
  std::size_t most_together() const { return most_together_; }

  std::vector<float> LogitsAfter(std::span<const TokenId> tokens) const {
    std::uint64_t hash = 1469598103934665603U;
    for (const TokenId token : tokens)
      hash = (hash ^ static_cast<std::uint64_t>(token)) * 1099511628211U;
    Rng rng(hash);
    std::vector<float> logits(options_.vocabulary);
    for (float& logit : logits) logit = static_cast<float>(8 * rng.Uniform());
    return logits;
  }

 private:
  struct Sequence {
    std::size_t reserved = 0;
    bool exact = false;
    std::string salt;
    std::vector<TokenId> tokens;
    std::vector<float> logits;
  };

  ExpertUsage TakeUsage(RequestId request) {
    const ExpertUsage usage = not_taken_[request];
    not_taken_.erase(request);
    return usage;
  }

  Options options_;
  std::atomic<RequestId> last_request_{1000};  // not what others begin with
  std::map<RequestId, ExpertUsage> not_taken_;
  std::uint64_t reads_ = 0;
  std::map<SequenceId, Sequence> sequences_;
  std::vector<Sequence> ended_;
  std::size_t reserved_ = 0, passes_ = 0, rows_ = 0, most_together_ = 0;
  std::atomic<std::size_t> looks_{0};
  std::vector<RowsCost> costs_;
  std::vector<PassRows> guessed_;  // of the last pass, if any group of it has guesses
  std::uint64_t guessed_right_ = 0, guessed_wrong_ = 0;
  std::vector<float> checked_;
  SamplerScratch scratch_;
};

}  // namespace troupe
