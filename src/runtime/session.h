// One sequence of tokens on an engine: its keys and values, and the logits after its last token.
// Many can be open at once, as many as the engine was planned for, and share passes through
// Engine::Run; the calls here are for one alone. Feeding a prompt in one call or in many, alone or
// beside others, gives the same bytes.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "model/kv_pool.h"
#include "runtime/engine.h"
#include "runtime/prefix_cache.h"

namespace troupe {

class Session {
 public:
  // Of at most `positions` tokens, for which it reserves room in the KV cache; absent: a whole
  // context. Fails with kResourceExhausted if as many are open as the engine was planned for, or if
  // the others have reserved too much. The engine must outlive it.
  static Result<Session> Create(Engine& engine,
                                std::optional<std::uint32_t> positions = std::nullopt);

  // The same, but without room yet: ReserveRoom is called before any token is fed.
  static Result<Session> CreateWithoutRoom(Engine& engine, std::uint32_t positions);
  // kResourceExhausted, with nothing changed: others hold too much.
  Status ReserveRoom();
  bool HasRoomFree() const;  // it would succeed though nobody gave up anything

  // Goes on with what others have left in the cache of the tokens that are to come first: those it
  // has, and others behind them. Gives how many it took over; logits() is then of no token.
  // Only of those with the same salt, which is set before.
  enum class LastPage { kCopy, kTake };  // as of PrefixCache
  std::size_t TakeFrom(PrefixCache& prefixes, TokenIds tokens, LastPage last = LastPage::kCopy);
  void KeepIn(PrefixCache& prefixes, PrefixCache::Keeping which) {
    prefixes.Keep(cache_, tokens_, which, salt_);
  }
  void set_salt(std::string salt) { salt_ = std::move(salt); }
  const std::string& salt() const { return salt_; }

  // Of models whose sequences have a state: as KvSequence's. It has room, and has caught up.
  void Restore(const SavedState& state) { cache_.Restore(state); }
  std::optional<SavedState> TakeSaved() { return cache_.TakeSaved(); }
  SavedState LeaveState() { return cache_.LeaveState(); }

  // Whether a page of the engine's KvPool holds the same bytes as the sequence does for the
  // KvLayout::kTile tokens from `first` on, with which a page begins. REQUIRES: it has them.
  bool SameTile(std::size_t first, std::span<const std::byte> page) const;

  // Appends tokens that were generated; afterwards logits() is of the last one. Fails, with the
  // sequence as it was, if they do not fit into the context.
  Status Feed(TokenIds tokens);

  // Asked before each chunk of a prompt, which may take long: true ends it there.
  using StopAsked = std::function<bool()>;
  // Like Feed, of tokens of a prompt. If it is stopped it fails as cancelled, what was read stays,
  // and logits() is of no token.
  Status FeedPrompt(TokenIds tokens, const StopAsked& stop = {});

  // Appends tokens and calls row(i, logits) for every one from `first` on, in order: what scoring
  // a text needs. The logits are valid during the call.
  using RowVisitor = troupe::RowVisitor;
  Status FeedForLogits(TokenIds tokens, std::size_t first, Phase phase, const RowVisitor& row);

  // The same of a draft's tokens behind them, to be checked: what follows `guesses` of them is then
  // LogitsAfterGuesses(guesses), until KeepGuesses says how many of them stay. Before the next
  // feed.
  Status FeedWithGuesses(TokenIds tokens, std::uint32_t guessed);
  std::span<const float> LogitsAfterGuesses(std::size_t guesses) {
    return engine_->LogitsAfterGuesses(0, guesses);
  }
  // Guesses that fit into a pass behind one token. None where answers may differ from the exact
  // ones: they would differ by the number of rows, too.
  std::size_t MostGuesses() const { return engine_->exact() ? engine_->MostGuesses() : 0; }
  void KeepGuesses(std::uint32_t right) { engine_->KeepGuesses({&right, 1}); }

  // The same of tokens whose answers are a draft's, by the experts that are in memory alone:
  // nothing is read for them, and nobody learns from them. Before anything else the sequence is to
  // forget them again: Truncate, to what it held before the first of them. They are counted for
  // that request. REQUIRES: Engine::DraftsByResidents.
  Status FeedByResidents(TokenIds tokens, RequestId request);

  // Of its last `tokens`, those that an encoder has read.
  std::size_t EncodedOf(std::size_t tokens) const {
    const std::size_t before = tokens_.size() - tokens;
    return cache_.encoded() - std::min(before, cache_.encoded());
  }

  std::span<const float> logits() const { return engine_->LogitsOf(id()); }
  // The engine's, for who draws the next token.
  SamplerScratch& sampler_scratch() { return engine_->sampler_scratch(); }
  std::span<const std::int32_t> tokens() const { return tokens_; }
  std::uint64_t expert_uses() const { return engine_->transformer().expert_uses(); }
  ExpertUsage expert_usage() const { return engine_->expert_usage(); }
  std::size_t room() const { return most_ - tokens_.size(); }

  // Its place among the open sequences, and whom its tokens are counted for unless a pass says
  // otherwise: no two sessions of an engine have the same.
  SequenceId id() const { return slot_.id(); }
  RequestId request() const { return request_; }

  // Forgets the tokens from `length` on; their room stays reserved. logits() is then of no token
  // until the next Feed. Where a sequence has a state beside keys and values that could only go
  // back further (sequence_state.h), CatchUp reads the tokens between again; so does each Feed
  // here.
  void Truncate(std::size_t length);
  Status CatchUp();

 private:
  friend class Engine;  // Run appends

  Session(Engine& engine, SequenceSlots::Slot slot, KvSequence cache, std::uint32_t most);
  Status CheckRoom(std::size_t tokens) const;
  // Runs `rows` in chunks; `tokens`, `first_wanted` and the wish for logits are of all of them.
  Status RunInChunks(SequenceRows rows, const StopAsked& stop);

  Engine* engine_;
  SequenceSlots::Slot slot_;
  RequestId request_;
  KvSequence cache_;
  std::size_t most_;  // tokens
  std::string salt_;
  std::vector<std::int32_t> tokens_;
  std::optional<std::size_t> drafted_from_;  // tokens, behind which a draft's follow
};

}  // namespace troupe
