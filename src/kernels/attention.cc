#include "kernels/attention.h"

#include <cmath>

#include "base/check.h"
#include "kernels/attention_work.h"
#include "quant/exp_reference.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/attention.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "kernels/attention_block-inl.h"

HWY_BEFORE_NAMESPACE();
namespace troupe::HWY_NAMESPACE {

// Queries are scaled once here instead of every score later.
void CopyScaledQueries(const AttentionCall& call, std::size_t kv_head, const AttentionRows& rows,
                       const AttentionWork& work) {
  for (std::size_t r = 0; r < rows.count; ++r) {
    const std::size_t head = kv_head * rows.group + rows.HeadInGroup(r);
    const float* const q = call.q + rows.Token(r) * call.q_stride + head * call.layout.k_dim;
    float* const scaled = work.q.Row(r);
    for (std::size_t i = 0; i < call.layout.k_dim; ++i) scaled[i] = q[i] * call.scale;
  }
}

// total = total and block merged; n is the length of the sums of values.
void MergeStates(const SoftmaxState& block, const float* HWY_RESTRICT block_out, std::size_t n,
                 SoftmaxState& total, float* HWY_RESTRICT total_out) {
  const float largest = total.largest > block.largest ? total.largest : block.largest;
  const float old_factor = ExpReference(total.largest - largest);
  const float new_factor = ExpReference(block.largest - largest);
  total = {.largest = largest, .sum = std::fma(block.sum, new_factor, total.sum * old_factor)};
  const LaneTag d;
  std::size_t i = 0;
  for (; i + kVectorLanes <= n; i += kVectorLanes) {
    const LaneVec old = hn::Mul(hn::LoadU(d, total_out + i), hn::Set(d, old_factor));
    hn::StoreU(Fma(hn::LoadU(d, block_out + i), hn::Set(d, new_factor), old), d, total_out + i);
  }
  for (; i < n; ++i) total_out[i] = std::fma(block_out[i], new_factor, total_out[i] * old_factor);
}

// Merges the head's sink, a block whose values are all zero, and divides.
void WriteResult(const AttentionCall& call, std::size_t token, std::size_t head, SoftmaxState state,
                 float* sums) {
  if (call.sinks != nullptr) {
    const float sink = call.sinks[head];
    const float largest = state.largest > sink ? state.largest : sink;
    const float factor = ExpReference(state.largest - largest);
    state.sum = std::fma(state.sum, factor, ExpReference(sink - largest));
    for (std::size_t i = 0; i < call.layout.v_dim; ++i) sums[i] *= factor;
  }
  float* const out = call.out + token * call.out_stride + head * call.layout.v_dim;
  const float reciprocal = 1.0f / state.sum;
  for (std::size_t i = 0; i < call.layout.v_dim; ++i) out[i] = sums[i] * reciprocal;
}

// All blocks in turn, to the end result.
void RunWhole(const AttentionCall& call, std::size_t kv_head, const AttentionRows& rows,
              const AttentionWork& work) {
  const KvLayout& layout = call.layout;
  CopyScaledQueries(call, kv_head, rows, work);
  const std::size_t limit = rows.Limit(rows.count - 1);
  for (std::size_t block = rows.Begin(0) / Attention::kBlock; block * Attention::kBlock < limit;
       ++block) {
    const RowRange seeing = AttendToBlock(layout, call.kv, kv_head, block, rows, work);
    for (std::size_t r = seeing.first; r < seeing.end; ++r) {
      if (block == rows.Begin(r) / Attention::kBlock) {
        std::copy_n(work.block_out.Row(r), layout.v_dim, work.total_out.Row(r));
        work.total_state[r] = work.block_state[r];
      } else {
        MergeStates(work.block_state[r], work.block_out.Row(r), layout.v_dim, work.total_state[r],
                    work.total_out.Row(r));
      }
    }
  }
  for (std::size_t r = 0; r < rows.count; ++r) {
    const std::size_t head = kv_head * rows.group + rows.HeadInGroup(r);
    WriteResult(call, rows.Token(r), head, work.total_state[r], work.total_out.Row(r));
  }
}

// One block, to its place among the partial results.
void RunPart(const AttentionCall& call, std::size_t kv_head, const AttentionRows& rows,
             std::size_t block, const Partials& partials, const AttentionWork& work) {
  CopyScaledQueries(call, kv_head, rows, work);
  const RowRange seeing = AttendToBlock(call.layout, call.kv, kv_head, block, rows, work);
  for (std::size_t r = seeing.first; r < seeing.end; ++r) {
    const std::size_t head = kv_head * rows.group + rows.HeadInGroup(r);
    float* const record = partials.Record(rows.Token(r), head, block);
    record[0] = work.block_state[r].largest;
    record[1] = work.block_state[r].sum;
    std::copy_n(work.block_out.Row(r), call.layout.v_dim, record + Partials::kStateFloats);
  }
}

// The partial results of one row in ascending order; the first that it sees serves as the total.
void MergeParts(const AttentionCall& call, std::size_t token, std::size_t head,
                const Partials& partials) {
  const AttentionRows rows = RowsOf(call);
  const std::size_t row = token * rows.group;
  const std::size_t limit = rows.Limit(row);
  const std::size_t begin = rows.Begin(row) / Attention::kBlock;
  float* const first = partials.Record(token, head, begin);
  SoftmaxState total{.largest = first[0], .sum = first[1]};
  float* const total_out = first + Partials::kStateFloats;
  for (std::size_t block = begin + 1; block * Attention::kBlock < limit; ++block) {
    const float* const record = partials.Record(token, head, block);
    MergeStates({.largest = record[0], .sum = record[1]}, record + Partials::kStateFloats,
                call.layout.v_dim, total, total_out);
  }
  WriteResult(call, token, head, total, total_out);
}

}  // namespace troupe::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace troupe {

std::size_t Attention::ScratchFloats(const KvLayout& layout) {
  return AttentionWork::Floats(layout);
}

std::size_t Attention::PartialFloats(const KvLayout& layout, std::uint32_t heads,
                                     std::size_t tokens, std::size_t positions) {
  return tokens * heads * Blocks(positions) * Partials::RecordFloats(layout);
}

Attention::Attention(const AttentionCall& call, std::size_t threads, std::span<float> partials)
    : call_(call), partials_(partials) {
  TROUPE_CHECK(call.layout.Check().ok());
  TROUPE_CHECK(call.heads > 0 && call.heads % call.layout.kv_heads == 0);
  const std::size_t positions = call.Positions();
  TROUPE_CHECK(call.tokens > 0 && Blocks(positions) <= call.kv.pages.size());
  TROUPE_CHECK(RowsOf(call).Begin(0) < RowsOf(call).Limit(0));  // every query sees a key
  TROUPE_CHECK(call.layout.capacity == kBlock || positions <= call.layout.capacity);

  const std::size_t rows = call.tokens * (call.heads / call.layout.kv_heads);
  tiles_ = (rows + AttentionRows::kMost - 1) / AttentionRows::kMost;
  tile_rows_ = (rows + tiles_ - 1) / tiles_;
  // Four tasks a thread even out what tasks differ by.
  const bool too_few_tasks = threads > 1 && call.layout.kv_heads * tiles_ < 4 * threads;
  if (too_few_tasks &&
      partials.size() >= PartialFloats(call.layout, call.heads, call.tokens, positions)) {
    first_block_ = RowsOf(call).Begin(0) / kBlock;
    splits_ = Blocks(positions) - first_block_;
  }
}

HWY_EXPORT(RunWhole);
HWY_EXPORT(RunPart);
void Attention::Run(std::size_t task, std::span<float> scratch) const {
  TROUPE_DCHECK(task < tasks() && scratch.size() >= ScratchFloats(call_.layout));
  const AttentionWork work = AttentionWork::Divide(call_.layout, scratch.data());
  const std::size_t kv_heads = call_.layout.kv_heads;
  const std::size_t kv_head = task % kv_heads;
  const std::size_t block = first_block_ + task / kv_heads % splits_;
  // The last tokens see the most keys: the longest tasks come first.
  const std::size_t tile = tiles_ - 1 - task / kv_heads / splits_;
  AttentionRows rows = RowsOf(call_);
  rows.first = tile * tile_rows_;
  rows.count = std::min(tile_rows_, rows.count - rows.first);
  if (splits_ == 1) {
    HWY_DYNAMIC_DISPATCH(RunWhole)(call_, kv_head, rows, work);
  } else if (block * kBlock < rows.Limit(rows.count - 1) && (block + 1) * kBlock > rows.Begin(0)) {
    HWY_DYNAMIC_DISPATCH(RunPart)
    (call_, kv_head, rows, block, Partials(call_, {first_block_, splits_}, partials_.data()), work);
  }
}

HWY_EXPORT(MergeParts);
void Attention::Merge(std::size_t merge) const {
  TROUPE_DCHECK(merge < merges());
  HWY_DYNAMIC_DISPATCH(MergeParts)
  (call_, merge / call_.heads, merge % call_.heads,
   Partials(call_, {first_block_, splits_}, partials_.data()));
}

}  // namespace troupe
#endif
