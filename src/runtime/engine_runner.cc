#include "runtime/engine_runner.h"

#include <algorithm>

#include "base/available_cpus.h"
#include "model/kv_cache.h"
#include "model/workspace.h"

namespace troupe {

Bytes EngineRunner::BytesBeside(const ModelConfig& config, const EngineOptions& options,
                                std::uint32_t sequences) {
  const std::uint32_t context =
      options.context.value_or(std::min(config.trained_context, EngineOptions::kDefaultContext));
  const Bytes session =
      KvCache::BytesFor(config, options.kv_type, context) +
      Workspace::BytesFor(config, {.chunk = options.chunk,
                                   .threads = options.threads.value_or(AvailableCpus()),
                                   .kv = KvCache::LayoutFor(config, options.kv_type, context)});
  return (sequences - 1) * session;
}

Result<std::unique_ptr<EngineRunner>> EngineRunner::Create(Engine& engine,
                                                           std::uint32_t sequences) {
  std::unique_ptr<EngineRunner> runner(new EngineRunner(engine));
  for (std::uint32_t i = 0; i < sequences; ++i) {
    TROUPE_ASSIGN_OR_RETURN(Session session, Session::Create(engine));
    runner->sessions_.push_back(std::move(session));
  }
  runner->taken_.resize(sequences);
  return runner;
}

RunnerLimits EngineRunner::limits() const {
  return {.rows = engine_.plan().memory.chunk,
          .sequences = static_cast<std::uint32_t>(sessions_.size()),
          .context = engine_.plan().context()};
}

std::optional<SequenceId> EngineRunner::Reserve(std::size_t tokens) {
  TROUPE_CHECK(tokens <= engine_.plan().context());  // what every session has memory for
  const auto free = std::ranges::find(taken_, false);
  if (free == taken_.end()) return std::nullopt;
  *free = true;
  return static_cast<SequenceId>(free - taken_.begin());
}

void EngineRunner::Release(SequenceId sequence) {
  TROUPE_CHECK(taken_[sequence]);
  taken_[sequence] = false;
  sessions_[sequence].Truncate(0);
}

Status EngineRunner::Run(std::span<const PassRows> rows) {
  costs_.clear();
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const Status status = RunGroup(rows[i]);
    if (status.ok()) continue;
    for (const PassRows& before : rows.first(i)) {
      Session& session = sessions_[before.sequence];
      session.Truncate(session.tokens().size() - before.tokens.size());
    }
    return status;
  }
  return OkStatus();
}

Status EngineRunner::RunGroup(const PassRows& group) {
  TROUPE_CHECK(taken_[group.sequence]);
  Session& session = sessions_[group.sequence];
  const std::uint64_t uses = session.expert_uses();
  const ExpertUsage usage = session.expert_usage();
  TROUPE_RETURN_IF_ERROR(group.phase == Phase::kPrompt ? session.FeedPrompt(group.tokens)
                                                       : session.Feed(group.tokens));
  costs_.push_back({.expert_uses = session.expert_uses() - uses,
                    .experts = session.expert_usage().Since(usage)});
  return OkStatus();
}

std::span<const float> EngineRunner::Logits(SequenceId sequence) const {
  return sessions_[sequence].logits();
}

}  // namespace troupe
