#include "runtime/session.h"

#include <algorithm>

namespace troupe {
namespace {

// Rows of logits computed together when all are asked for: enough to read the output matrix seldom,
// few enough to take little beside a small budget.
constexpr std::size_t kLogitRows = 32;
constexpr std::size_t kLogitBytes = 4 << 20;

}  // namespace

Session::Session(Engine& engine, KvCache cache, Workspace workspace)
    : engine_(&engine),
      cache_(std::move(cache)),
      workspace_(std::move(workspace)),
      logits_(engine.config().vocabulary) {
  tokens_.reserve(cache_.capacity());
}

Result<Session> Session::Create(Engine& engine) {
  const EnginePlan& plan = engine.plan();
  TROUPE_ASSIGN_OR_RETURN(KvCache cache,
                          KvCache::Create(engine.config(), plan.kv_type, plan.context()));
  RopeParams rope = engine.config().rope;
  rope.freq_factors = engine.weights().rope_freq_factors;
  TROUPE_ASSIGN_OR_RETURN(
      Workspace workspace,
      Workspace::Create(engine.config(),
                        {.chunk = plan.memory.chunk, .threads = plan.threads, .kv = cache.layout()},
                        std::move(rope)));
  return Session(engine, std::move(cache), std::move(workspace));
}

Status Session::CheckRoom(std::size_t tokens) const {
  if (tokens <= room()) return OkStatus();
  return Error(Code::kResourceExhausted,
               "{} tokens after {} are more than the context of {} tokens holds", tokens,
               cache_.length(), cache_.capacity());
}

Status Session::Feed(TokenIds tokens) { return FeedChunks(tokens, Phase::kDecode, {}); }

Status Session::Forward(TokenIds tokens, Phase phase) {
  return engine_->transformer().Forward({.cache = &cache_, .tokens = tokens, .phase = phase},
                                        workspace_);
}

Status Session::FeedChunks(TokenIds tokens, Phase phase, const StopAsked& stop) {
  TROUPE_RETURN_IF_ERROR(CheckRoom(tokens.size()));
  const std::size_t before = tokens_.size();
  for (std::size_t at = 0; at < tokens.size();) {
    if (stop && stop()) return Error(Code::kCancelled, "stopped after {} tokens", at);
    const std::size_t count = std::min(workspace_.chunk(), tokens.size() - at);
    const Status status = Forward(tokens.subspan(at, count), phase);
    if (!status.ok()) {
      Truncate(before);
      return status;
    }
    tokens_.insert(tokens_.end(), tokens.begin() + at, tokens.begin() + at + count);
    at += count;
    if (at == tokens.size()) {
      engine_->transformer().Logits(workspace_, count - 1, 1, logits_.data());
    }
  }
  return OkStatus();
}

Status Session::FeedPrompt(TokenIds tokens, const StopAsked& stop) {
  return FeedChunks(tokens, Phase::kPrompt, stop);
}

Status Session::FeedForLogits(TokenIds tokens, std::size_t first, Phase phase,
                              const RowVisitor& row) {
  TROUPE_RETURN_IF_ERROR(CheckRoom(tokens.size()));
  const std::size_t before = tokens_.size(), vocabulary = logits_.size();
  const std::size_t most =
      std::clamp<std::size_t>(kLogitBytes / (vocabulary * sizeof(float)), 1, kLogitRows);
  std::vector<float> rows(std::min({most, workspace_.chunk(), tokens.size()}) * vocabulary);
  for (std::size_t at = 0; at < tokens.size();) {
    const std::size_t count = std::min(workspace_.chunk(), tokens.size() - at);
    const Status status = Forward(tokens.subspan(at, count), phase);
    if (!status.ok()) {
      Truncate(before);
      return status;
    }
    tokens_.insert(tokens_.end(), tokens.begin() + at, tokens.begin() + at + count);
    for (std::size_t r = first > at ? std::min(first - at, count) : 0; r < count;) {
      const std::size_t batch = std::min(rows.size() / vocabulary, count - r);
      engine_->transformer().Logits(workspace_, r, batch, rows.data());
      for (std::size_t i = 0; i < batch; ++i) {
        row(at + r + i, std::span(rows).subspan(i * vocabulary, vocabulary));
      }
      std::copy_n(rows.data() + (batch - 1) * vocabulary, vocabulary, logits_.data());
      r += batch;
    }
    at += count;
  }
  return OkStatus();
}

void Session::Truncate(std::size_t length) {
  tokens_.resize(length);
  cache_.Truncate(length);
}

}  // namespace troupe
