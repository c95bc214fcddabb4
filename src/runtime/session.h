// One sequence of tokens on an engine: its KV cache, the memory its passes work in, and the logits
// after its last token. Feeding a prompt in one call or in many gives the same bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "base/status.h"
#include "model/kv_pool.h"
#include "model/workspace.h"
#include "runtime/engine.h"

namespace troupe {

class Session {
 public:
  // The engine must outlive it.
  static Result<Session> Create(Engine& engine);

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
  using RowVisitor = std::function<void(std::size_t index, std::span<const float> logits)>;
  Status FeedForLogits(TokenIds tokens, std::size_t first, Phase phase, const RowVisitor& row);

  std::span<const float> logits() const { return logits_; }
  std::span<const std::int32_t> tokens() const { return tokens_; }
  std::uint64_t expert_uses() const { return engine_->transformer().expert_uses(); }
  ExpertUsage expert_usage() const { return engine_->expert_usage(); }
  std::size_t room() const { return engine_->plan().context() - cache_.length(); }

  // Forgets the tokens from `length` on. logits() is then of no token until the next Feed.
  void Truncate(std::size_t length);

 private:
  Session(Engine& engine, std::unique_ptr<KvPool> pool, Workspace workspace);
  Status CheckRoom(std::size_t tokens) const;
  Status FeedChunks(TokenIds tokens, Phase phase, const StopAsked& stop);
  Status Forward(TokenIds tokens, Phase phase);

  Engine* engine_;
  std::unique_ptr<KvPool> pool_;
  KvSequence cache_;
  Workspace workspace_;
  std::vector<std::int32_t> tokens_;
  std::vector<float> logits_;
};

}  // namespace troupe
