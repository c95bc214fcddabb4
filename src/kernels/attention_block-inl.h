// What one block of keys contributes to some query rows: scores, their softmax relative to the
// block's largest, and the weighted sum of its values. Rows are of one kv head, in the order of
// their tokens, so the number of keys they may see never falls from one to the next.
// Included once a target; simd.h says why the toggle.
#if defined(TROUPE_KERNELS_ATTENTION_BLOCK_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TROUPE_KERNELS_ATTENTION_BLOCK_INL_H_
#undef TROUPE_KERNELS_ATTENTION_BLOCK_INL_H_
#else
#define TROUPE_KERNELS_ATTENTION_BLOCK_INL_H_
#endif

#include <algorithm>
#include <limits>

#include "kernels/attention.h"
#include "kernels/attention_tile-inl.h"
#include "kernels/attention_work.h"
#include "kernels/fast_exp-inl.h"

HWY_BEFORE_NAMESPACE();
namespace troupe::HWY_NAMESPACE {

// Positions [begin, end) of the sequence; end is cut at what the last row may see.
struct KeyRange {
  std::size_t begin, end;
  std::size_t size() const { return end - begin; }
};

// The rows [first, end) of a task that see a key of a range: Limit and Begin never fall.
struct RowRange {
  std::size_t first, end;
};

HWY_INLINE std::size_t Strips(std::size_t columns) { return (columns + kStrip - 1) / kStrip; }

HWY_INLINE RowRange RowsThatSee(const AttentionRows& rows, const KeyRange& keys) {
  RowRange seeing{0, rows.count};
  while (seeing.first < rows.count && rows.Limit(seeing.first) <= keys.begin) ++seeing.first;
  while (seeing.end > seeing.first && rows.Begin(seeing.end - 1) >= keys.end) --seeing.end;
  return seeing;
}

// Where the panels of a block begin: before it no row sees a key. Panels lie at multiples of their
// depth, so that the arithmetic of none depends on the others.
HWY_INLINE std::size_t FirstPanel(const AttentionRows& rows, const KeyRange& block,
                                  std::size_t depth) {
  const std::size_t first = std::max(rows.Begin(0), block.begin);
  return block.begin + (first - block.begin) / depth * depth;
}

// How deep panels are. Many rows want them as deep as they can be; with few, converting, which
// waits for memory, takes turns with multiplying, which does not: short turns keep both busy.
// Measured by attention_bench: caches beyond the second level are read 1.25 to 1.7 times as fast.
HWY_INLINE std::size_t PanelDepth(const AttentionRows& rows) {
  return rows.count <= 8 ? kPanel / 2 : kPanel;
}

HWY_INLINE void ZeroRows(const RowMatrix& m, const RowRange& rows, std::size_t columns) {
  for (std::size_t r = rows.first; r < rows.end; ++r) std::fill_n(m.Row(r), columns, 0.0f);
}

// One head's keys, or its values, of the block under way; and where those of the next block begin,
// which is in another page (null if there is none).
struct BlockPart {
  const std::byte* begin;
  const std::byte* next_begin;
  std::size_t positions;  // of one unit: a tile of keys, a row of values
  std::size_t bytes;

  HWY_INLINE const std::byte* At(std::size_t position) const {
    if (position < Attention::kBlock || next_begin == nullptr) {
      return begin + position / positions * bytes;
    }
    return next_begin + (position - Attention::kBlock) / positions * bytes;
  }
};

// scores[r][position - block.begin] for all positions that row r sees; others are arbitrary.
HWY_INLINE void ScoreBlock(const KvLayout& layout, const BlockPart& keys, const KeyRange& block,
                           const AttentionRows& rows, const AttentionWork& work) {
  const std::size_t depth = PanelDepth(rows);
  for (KeyRange part{FirstPanel(rows, block, kPanel), 0}; part.begin < block.end;
       part.begin = part.end) {
    part.end = std::min(part.begin + kPanel, block.end);
    const RowRange seeing = RowsThatSee(rows, part);
    const std::size_t column = part.begin - block.begin;
    const std::size_t strips = Strips(part.size());
    ZeroRows({work.scores.Row(0) + column, work.scores.stride}, seeing, strips * kStrip);
    for (std::size_t dim = 0; dim < layout.k_dim; dim += depth) {
      const std::size_t dims = std::min<std::size_t>(depth, layout.k_dim - dim);
      KeysToPanel(layout, keys.At(column), keys.At(column + kPanel), strips, dim, dims, work.panel);
      for (std::size_t r = seeing.first; r < seeing.end; r += kTileRows) {
        const std::size_t n = std::min(kTileRows, seeing.end - r);
        const std::size_t seen = std::min(rows.Limit(r + n - 1), part.end) - part.begin;
        MultiplyPanel(n, {work.q.Row(r) + dim, work.q.stride}, work.panel, dims, Strips(seen),
                      {work.scores.Row(r) + column, work.scores.stride});
      }
    }
  }
}

// Scores of the keys [begin, end) of a block to e^(score - largest), in place, and their sum; what
// lies before and behind them up to multiples of 16 becomes zero. A key's lane is that of its place
// in the block: leaving out the lanes before `begin` would only leave out zeros.
HWY_INLINE SoftmaxState SoftmaxOfBlock(float* HWY_RESTRICT scores, std::size_t begin,
                                       std::size_t end) {
  const LaneTag d;
  constexpr float kLowest = -std::numeric_limits<float>::infinity();
  const std::size_t first = begin / kLanes * kLanes, n = end - first;
  std::fill(scores + first, scores + begin, kLowest);
  scores += first;
  LaneVec lanes[kVectors];
  for (LaneVec& lane : lanes) lane = hn::Set(d, kLowest);
  ForLanes(scores, n, kLowest,
           [&lanes](std::size_t v, LaneVec s) HWY_ATTR { lanes[v] = hn::Max(lanes[v], s); });
  const float largest = LargestLane(lanes);
  for (LaneVec& lane : lanes) lane = hn::Zero(d);
  float* to = scores;
  ForLanes(scores, n, kLowest, [&lanes, &to, d, largest](std::size_t v, LaneVec s) HWY_ATTR {
    const LaneVec p = FastExp(d, hn::Sub(s, hn::Set(d, largest)));
    hn::StoreU(p, d, to);
    to += kVectorLanes;
    lanes[v] = hn::Add(lanes[v], p);
  });
  return {.largest = largest, .sum = SumLanes(lanes)};
}

HWY_INLINE void AddBias(const float* HWY_RESTRICT bias, float* HWY_RESTRICT scores, std::size_t n) {
  const LaneTag d;
  std::size_t i = 0;
  for (; i + kVectorLanes <= n; i += kVectorLanes) {
    hn::StoreU(hn::Add(hn::LoadU(d, scores + i), hn::LoadU(d, bias + i)), d, scores + i);
  }
  for (; i < n; ++i) scores[i] += bias[i];
}

// Adds the values of `part` (in the panel, 16 * strips dimensions from `dim` on) to the rows that
// see any of them.
HWY_INLINE void AddPanelOfValues(const KeyRange& block, const KeyRange& part,
                                 const AttentionRows& rows, std::size_t dim, std::size_t strips,
                                 const AttentionWork& work) {
  // The rows of the panel that a row sees.
  const auto begin_of = [&](std::size_t r) {
    return std::max(rows.Begin(r), part.begin) - part.begin;
  };
  const auto end_of = [&](std::size_t r) { return std::min(rows.Limit(r), part.end) - part.begin; };
  const std::size_t column = part.begin - block.begin;
  const auto add = [&](std::size_t r, std::size_t n, std::size_t begin, std::size_t end) {
    if (begin >= end) return;
    MultiplyPanel(n, {work.scores.Row(r) + column + begin, work.scores.stride},
                  work.panel + begin * kPanel, end - begin, strips,
                  {work.block_out.Row(r) + dim, work.block_out.stride});
  };
  const RowRange seeing = RowsThatSee(rows, part);
  for (std::size_t r = seeing.first; r < seeing.end; r += kTileRows) {
    const std::size_t n = std::min(kTileRows, seeing.end - r);
    // What all see is between the last one's begin and the first one's end. At the edge of a window
    // earlier rows see a few keys before it, on the diagonal later rows a few behind it.
    // Multiplying all rows with zeros instead would turn an infinite value that a row does not see
    // into NaN.
    const std::size_t begin = std::min(begin_of(r + n - 1), end_of(r)), end = end_of(r);
    for (std::size_t i = 0; i < n; ++i)
      add(r + i, 1, begin_of(r + i), std::min(begin, end_of(r + i)));
    add(r, n, begin, end);
    for (std::size_t i = 1; i < n; ++i) {
      add(r + i, 1, std::max(end, begin_of(r + i)), end_of(r + i));
    }
  }
}

HWY_INLINE void SumValuesOfBlock(const KvLayout& layout, const BlockPart& keys,
                                 const BlockPart& values, const KeyRange& block,
                                 const AttentionRows& rows, const AttentionWork& work) {
  ZeroRows(work.block_out, RowsThatSee(rows, block), work.block_out.stride);
  const std::size_t depth = PanelDepth(rows);
  for (std::size_t dim = 0; dim < layout.v_dim; dim += kPanel) {
    const std::size_t strips = Strips(std::min<std::size_t>(kPanel, layout.v_dim - dim));
    for (KeyRange part{FirstPanel(rows, block, depth), 0}; part.begin < block.end;
         part.begin = part.end) {
      part.end = std::min(part.begin + depth, block.end);
      const std::size_t row = part.begin - block.begin;
      if (layout.values_in_keys) {
        KeysToPanel(layout, keys.At(row), keys.At(row + kPanel), Strips(part.size()), dim,
                    strips * kStrip, work.other_panel);
        TransposePanel(work.other_panel, strips * kStrip, Strips(part.size()) * kStrip, work.panel);
      } else {
        ValuesToPanel(layout, values.At(row), values.At(row + kPanel), part.size(), dim, strips,
                      work.panel);
      }
      AddPanelOfValues(block, part, rows, dim, strips, work);
    }
  }
}

// All of it: afterwards work.block_out and work.block_state hold the contribution of block number
// `block` to the rows that see it, which are returned.
HWY_INLINE RowRange AttendToBlock(const KvLayout& layout, const PagedKv& kv, std::size_t kv_head,
                                  std::size_t block, const AttentionRows& rows,
                                  const AttentionWork& work) {
  const std::size_t begin = block * Attention::kBlock;
  const KeyRange range{begin, std::min(begin + Attention::kBlock, rows.Limit(rows.count - 1))};
  const bool last = block + 1 == kv.pages.size();
  const std::byte* const next = last ? nullptr : kv.Page(block + 1);
  const auto part = [&](std::size_t offset, std::size_t positions, std::size_t bytes) {
    return BlockPart{.begin = kv.Page(block) + offset,
                     .next_begin = last ? nullptr : next + offset,
                     .positions = positions,
                     .bytes = bytes};
  };
  const std::size_t offset = layout.KeyTileOffset(kv_head, 0);
  const BlockPart keys = part(offset, KvLayout::kTile, layout.KeyTileBytes());
  const BlockPart values = part(offset + layout.KeyBytes(), 1, layout.ValueRowBytes());
  const RowRange seeing = RowsThatSee(rows, range);
  ScoreBlock(layout, keys, range, rows, work);
  for (std::size_t r = seeing.first; r < seeing.end; ++r) {
    const KeyRange seen{std::max(rows.Begin(r), begin), std::min(rows.Limit(r), range.end)};
    if (rows.bias.numbers != nullptr) {
      const std::size_t head = kv_head * rows.group + rows.HeadInGroup(r);
      AddBias(rows.bias.Of(head, rows.Position(r), seen.begin),
              work.scores.Row(r) + (seen.begin - begin), seen.size());
    }
    work.block_state[r] = SoftmaxOfBlock(work.scores.Row(r), seen.begin - begin, seen.end - begin);
  }
  SumValuesOfBlock(layout, keys, values, range, rows, work);
  return seeing;
}

}  // namespace troupe::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
