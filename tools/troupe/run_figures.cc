#include "troupe/run_figures.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>

#include "troupe/counted.h"
#include "troupe/foresight_figures.h"

namespace troupe {
namespace {

bool IsOffloaded(const RunFigures& figures) { return figures.slots > 0; }

std::string PromptLine(const RunFigures& figures) {
  if (figures.tokens == 0) return "";  // it may not have been read to its end
  return fmt::format("[prompt: {} at {:.1f} tokens/s, first token of the answer after {:.0f} ms]\n",
                     Counted(figures.usage.prompt_tokens, "token"),
                     figures.usage.PrefillTokensPerSecond(),
                     figures.usage.first_token_seconds * 1e3);
}

std::string DraftsLine(const SpeculationUse& drafts) {
  if (drafts.checks == 0) return "";
  return fmt::format("[drafts: {} of {} drafted tokens right]\n", drafts.accepted, drafts.drafted);
}

std::string CardLine(const ExpertUsage& all) {
  if (all.card_rows == 0 && all.card_failures == 0) return "";
  return fmt::format("[card: answered {} of experts, {} copied into it{}]\n",
                     Counted(all.card_rows, "row"), Counted(all.card_copies, "expert"),
                     all.card_failures > 0 ? "; it has failed" : "");
}

std::string ExpertsLine(const RunFigures& figures) {
  const ExpertUsage& all = figures.usage.experts;
  return fmt::format(
      "[experts: {} of {} in memory, {} read in {} reads, {:.2f} s waiting for them]\n",
      figures.slots, figures.experts, ToString(Bytes(all.bytes_read)), all.reads,
      all.stall_seconds);
}

std::string TokenLine(const Usage& usage) {
  if (usage.decode_steps == 0) return "";
  const ExpertUsage& decode = usage.decode_experts;
  const PassTime time = usage.DecodePassTime();
  const auto steps = static_cast<double>(usage.decode_steps);
  return fmt::format(
      "[each token: {:.1f} % cache hits, {} read, {:.1f} ms computing ({:.1f} ms of it while "
      "reading), {:.1f} ms waiting]\n",
      100 * decode.HitRate(),
      ToString(Bytes(static_cast<std::uint64_t>(static_cast<double>(decode.bytes_read) / steps))),
      1e3 * (time.computing_seconds + time.overlapped_seconds) / steps,
      1e3 * time.overlapped_seconds / steps, 1e3 * time.stall_seconds / steps);
}

// Some loads that the answer asked for were begun while its prompt was read: what became of loads
// is counted, and not how many were begun, or more than all of them would have been used.
std::string PrefetchLine(const ExpertUsage& decode) {
  const std::uint64_t used = decode.prefetch_useful + decode.prefetch_late;
  const std::uint64_t unused =
      decode.prefetch_cancelled + decode.prefetch_wasted +
      static_cast<std::uint64_t>(std::max(decode.prefetch_waiting, std::int64_t{0}));
  const std::string foresight = ForesightFigures(decode.foresight, used + unused, used);
  return foresight.empty() ? "" : fmt::format("[prefetch: {}]\n", foresight);
}

// Of the time in which the answer was computed, the part that waited for experts.
std::string WaitingShare(const RunFigures& figures) {
  const PassTime time = figures.usage.DecodePassTime();
  const double all = time.computing_seconds + time.overlapped_seconds + time.stall_seconds;
  if (!IsOffloaded(figures) || all <= 0) return "";
  return fmt::format(", {:.0f} % of the time waiting for experts", 100 * time.stall_seconds / all);
}

}  // namespace

std::string RunSentence(const RunFigures& figures) {
  // The first token comes with the prompt: of one alone there is no speed.
  const std::string speed =
      figures.tokens > 1 ? fmt::format(" at {:.1f} tokens/s{}",
                                       figures.usage.DecodeTokensPerSecond(), WaitingShare(figures))
                         : "";
  return fmt::format("[{}{}; peak memory {}; ended: {}]", Counted(figures.tokens, "token"), speed,
                     ToString(figures.peak), figures.ended);
}

std::string RunLossLines(const RunFigures& figures) {
  const Usage& usage = figures.usage;
  const ExpertUsage& all = usage.experts;
  std::string lines;
  if (all.grouped > 0) {
    lines += fmt::format("[not exact: of {} expert uses {} chosen by {}]\n", usage.expert_uses,
                         all.grouped, figures.gate);
  }
  if (!IsOffloaded(figures)) return lines;
  if (all.low_copies > 0) {
    lines += fmt::format("[not exact: {} of {} expert uses answered by low copies]\n",
                         all.low_copies, all.hits + all.misses);
  }
  if (all.substituted + all.dropped > 0) {
    lines += fmt::format("[not exact: of {} expert uses {} substituted, {} dropped]\n",
                         usage.expert_uses, all.substituted, all.dropped);
  }
  return lines;
}

std::string RunDetailLines(const RunFigures& figures) {
  const std::string answer =
      PromptLine(figures) + DraftsLine(figures.usage.speculation) + CardLine(figures.usage.experts);
  if (!IsOffloaded(figures)) return answer;
  return answer + ExpertsLine(figures) + TokenLine(figures.usage) +
         PrefetchLine(figures.usage.decode_experts);
}

}  // namespace troupe
