#include "model/attention_region.h"

#include <algorithm>

namespace troupe {
namespace {

// Keys times queries.
std::size_t Work(const AttentionCall& call) { return call.tokens * call.Positions(); }

}  // namespace

// Each call is cut as if it had the share of the threads that its work is of all calls': a long
// sequence beside short ones is split, equal ones are not, as there are enough of them.
void AttentionRegion::CutCalls(std::size_t threads, std::span<float> partials) {
  std::size_t all = 0;
  for (const AttentionCall& call : calls_) all += Work(call);
  tasks_ = merges_ = 0;
  for (const AttentionCall& call : calls_) {
    const std::size_t share = (threads * Work(call) + all - 1) / all;
    const Attention attention(call, share, partials);
    if (attention.merges() > 0) {
      partials = partials.subspan(
          Attention::PartialFloats(call.layout, call.heads, call.tokens, call.Positions()));
    }
    cuts_.push_back({.attention = attention, .first_task = tasks_, .first_merge = merges_});
    tasks_ += attention.tasks();
    merges_ += attention.merges();
  }
}

void AttentionRegion::Run(ThreadPool& pool, const Workspace& workspace) {
  CutCalls(pool.threads(), workspace.attention_partials);
  pool.Run(tasks_, [&](std::size_t task, std::size_t thread) {
    const auto after = std::ranges::upper_bound(cuts_, task, {}, &Cut::first_task);
    const Cut& cut = *(after - 1);
    cut.attention.Run(task - cut.first_task, workspace.AttentionScratch(thread));
  });
  if (merges_ > 0) {
    pool.Run(merges_, [&](std::size_t merge, std::size_t) {
      // Of cuts without merges, which begin where the next one does, the last is found.
      const auto after = std::ranges::upper_bound(cuts_, merge, {}, &Cut::first_merge);
      const Cut& cut = *(after - 1);
      cut.attention.Merge(merge - cut.first_merge);
    });
  }
  calls_.clear();
  cuts_.clear();
}

}  // namespace troupe
