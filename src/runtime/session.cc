#include "runtime/session.h"

#include <algorithm>
#include <array>
#include <numeric>

namespace troupe {
namespace {

// Rows of logits computed together when all are asked for: enough to read the output matrix seldom,
// few enough to take little beside a small budget.
constexpr std::size_t kLogitRows = 32;
constexpr std::size_t kLogitBytes = 4 << 20;

}  // namespace

Session::Session(Engine& engine, std::unique_ptr<KvPool> pool, Workspace workspace)
    : engine_(&engine),
      pool_(std::move(pool)),
      cache_(pool_->NewSequence()),
      workspace_(std::move(workspace)),
      logits_(engine.config().vocabulary) {
  tokens_.reserve(engine.plan().context());
}

Result<Session> Session::Create(Engine& engine) {
  const EnginePlan& plan = engine.plan();
  TROUPE_ASSIGN_OR_RETURN(std::unique_ptr<KvPool> pool,
                          KvPool::Create(engine.config(), {0, engine.config().layers},
                                         {.type = plan.kv_type, .context = plan.context()}));
  RopeParams rope = engine.config().rope;
  rope.freq_factors = engine.weights().rope_freq_factors;
  TROUPE_ASSIGN_OR_RETURN(Workspace workspace, Workspace::Create(engine.config(),
                                                                 {.chunk = plan.memory.chunk,
                                                                  .threads = plan.threads,
                                                                  .kv = pool->layout(),
                                                                  .context = plan.context()},
                                                                 std::move(rope)));
  Session session(engine, std::move(pool), std::move(workspace));
  TROUPE_RETURN_IF_ERROR(session.cache_.Reserve(plan.context()));
  return session;
}

Status Session::CheckRoom(std::size_t tokens) const {
  if (tokens <= room()) return OkStatus();
  return Error(Code::kResourceExhausted,
               "{} tokens after {} are more than the context of {} tokens holds", tokens,
               cache_.length(), engine_->plan().context());
}

Status Session::Feed(TokenIds tokens) { return FeedChunks(tokens, Phase::kDecode, {}); }

Status Session::Forward(TokenIds tokens, Phase phase) {
  const RowGroup group{.cache = &cache_, .tokens = tokens, .phase = phase};
  return engine_->transformer().Forward({&group, 1}, workspace_);
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
      const auto last = static_cast<std::uint32_t>(count - 1);
      engine_->transformer().Logits(workspace_, {&last, 1}, logits_.data());
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
      std::array<std::uint32_t, kLogitRows> wanted;
      std::iota(wanted.begin(), wanted.end(), static_cast<std::uint32_t>(r));
      engine_->transformer().Logits(workspace_, std::span(wanted).first(batch), rows.data());
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
