// The engine as the batcher sees it (pass_runner.h): each reservation is a session, the rows of all
// groups of a pass go through the layers together, and what sessions have read is kept for those
// that begin alike (prefix_cache.h), with their states where the model has them (kept_states.h).
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "runtime/draft_engine.h"
#include "runtime/engine.h"
#include "runtime/kept_prefixes.h"
#include "runtime/kept_states.h"
#include "runtime/part_keys.h"
#include "runtime/pass_runner.h"
#include "runtime/prefix_cache.h"
#include "runtime/route_heat.h"
#include "runtime/session.h"

namespace troupe {

class EngineRunner final : public PassRunner {
 public:
  // The engine must outlive it, and have one runner at a time. Other sessions of the engine take
  // from the same room. keeps_prefixes: otherwise nothing is kept for other sequences.
  explicit EngineRunner(Engine& engine, bool keeps_prefixes = true);
  ~EngineRunner() override;
  EngineRunner(const EngineRunner&) = delete;
  EngineRunner& operator=(const EngineRunner&) = delete;

  RunnerLimits limits() const override;
  RequestId NewRequest() override { return engine_.NewRequest(); }
  ExpertUsage EndRequest(RequestId request) override { return engine_.EndRequest(request); }
  std::optional<ReservedSequence> Reserve(const SequenceAsk& ask) override;
  std::size_t TakeCached(SequenceId sequence, std::span<const TokenId> prompt) override;
  void Release(SequenceId sequence) override;
  Status Run(std::span<const PassRows> rows) override;
  std::span<const float> Logits(SequenceId sequence) const override;
  std::span<const float> LogitsAfterGuesses(std::size_t group, std::size_t guesses) override {
    return engine_.LogitsAfterGuesses(group, guesses);
  }
  void KeepGuesses(std::span<const std::uint32_t> right) override;
  SamplerScratch& sampler_scratch() override { return engine_.sampler_scratch(); }
  DraftModel* draft_model() override { return draft_ ? &*draft_ : nullptr; }
  std::unique_ptr<DraftSequence> DraftByResidents(SequenceId sequence, RequestId request) override;
  std::unique_ptr<DraftSequence> DraftByHead(SequenceId sequence) override {
    return engine_.DraftByHead(SessionOf(sequence));
  }
  std::span<const RowsCost> costs() const override { return costs_; }
  PrefixCacheState prefix_cache() const override;
  std::vector<LayerHits> layer_hits() const override { return engine_.expert_usage().layers; }
  CardState card() const override;
  // What exact requests have left, from a file and to it (kept_prefixes.h), while no request is
  // under way: the first before any, with an empty cache. kFailedPrecondition: the model was opened
  // without a prefix cache.
  Result<PrefixFileReport> LoadPrefixes(const std::string& path, const MayGoOn& go_on = {});
  Status SavePrefixes(const std::string& path, const MayGoOn& go_on = {});

  // Keeps what somebody else has read of a text, as if an exact request had, behind what is kept of
  // it already: `most` positions or a page. Gives of how many positions it has whole pages then, or
  // all; no more than before where there is no room, or nothing is kept.
  std::size_t KeepPrefix(TokenIds tokens, std::string_view salt, std::size_t most,
                         const FillSequence& fill);

  // Of exact requests; nothing of models without states.
  const KeptStates& kept_states() const { return exact_.states; }

  // From the first look on it counts what routers choose, unless the engine has another observer.
  ExpertMap LookAtExperts() override;

 private:
  // What requests have left that want exactness, or others.
  struct Left {
    PrefixCache prefixes;
    KeptStates states;  // stays empty of models without
  };
  struct Reservation {
    Session session;
    Left* left;  // null: it shares nothing
    // Tokens after which a state is to be kept: where other texts have parted from this one, where
    // they are likely to, and shortly before the prompt ends; 0: not there.
    std::size_t parting = 0;
    std::size_t common = 0;
    std::size_t near_end = 0;

    std::size_t SaveAfter(std::size_t rows) const;  // of the next ones; 0: nothing
    std::size_t TakeCached(std::span<const TokenId> prompt);
  };

  Reservation& ReservationOf(SequenceId sequence);
  Session& SessionOf(SequenceId sequence) { return ReservationOf(sequence).session; }
  // Memory for all its tokens, and what it finds of the prompt; false: others hold too much.
  bool MakeRoom(Reservation& reservation, std::span<const TokenId> prompt);
  bool MakeRoomBehindState(Reservation& reservation, const SequenceAsk& ask);
  void KeepWhatWasRead();
  void KeepWhatWasRead(Reservation& reservation);
  void GiveUp(std::size_t pages);
  void GiveUpStates(std::size_t places);
  RowsCost TakeCost(const PassRows& group);
  Status CheckKeepsPrefixes(const std::string& path) const;

  Engine& engine_;
  const bool keeps_prefixes_;
  // Of rows that were computed exactly, and of others: these must not serve a request that wants
  // exactness.
  Left exact_, lossy_;
  KeptPrefixes kept_;                                 // of exact_
  std::vector<std::optional<Reservation>> sessions_;  // by Session::id()
  std::vector<SequenceRows> rows_;                    // of Run, kept for their memory
  std::vector<RowsCost> costs_;
  std::optional<DraftEngine> draft_;
  std::optional<RouteHeat> heat_;  // since the first look
};

}  // namespace troupe
