// What one pass through the layers runs: groups of rows, each some consecutive tokens of one
// sequence, prompts and decodes mixed. Every row gets the bytes that it would get alone.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

#include "expert/pass_facts.h"
#include "model/kv_pool.h"

namespace troupe {

using TokenIds = std::span<const std::int32_t>;

struct RowGroup {
  KvSequence* cache = nullptr;  // the rows go to the positions from cache->length() on
  TokenIds tokens;              // at least one; or, of a part of a model that does not begin with
  std::span<const float> stream = {};  // the first layer, as many rows of the residual stream
  SequenceId sequence = 0;
  RequestId request = 0;
  Phase phase = Phase::kDecode;
  bool exact = false;  // as RowGroupFacts::exact
  // As RowGroupFacts::guessed. Where sequences have a state, the groups with guesses have no more
  // rows in all than inputs can be kept of (StatePoolShape).
  std::uint32_t guessed = 0;
  bool drafts = false;  // as PassFacts::drafts: all groups of a batch, or none
  // Of models whose sequences have a state: what it is after n rows is to be saved, too
  // (KvSequence::TakeSaved). At most all of them; 0: it is not.
  std::size_t save_after = 0;
  // Set by another thread once nobody wants the rows any more; null: somebody always does. A pass
  // of which nobody wants any rows ends behind the layer that is under way, as cancelled.
  const std::atomic<bool>* unwanted = nullptr;

  std::size_t Rows(std::size_t width) const {
    return stream.empty() ? tokens.size() : stream.size() / width;
  }
};

using Batch = std::span<const RowGroup>;

}  // namespace troupe
