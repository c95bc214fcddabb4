// What one pass through the layers runs: groups of rows, each some consecutive tokens of one
// sequence, prompts and decodes mixed. Every row gets the bytes that it would get alone.
#pragma once

#include <cstdint>
#include <span>

#include "expert/pass_facts.h"
#include "model/kv_cache.h"

namespace troupe {

using TokenIds = std::span<const std::int32_t>;

struct RowGroup {
  KvCache* cache = nullptr;  // the rows go to the positions from cache->length() on
  TokenIds tokens;           // at least one
  SequenceId sequence = 0;
  RequestId request = 0;
  Phase phase = Phase::kDecode;
  bool exact = false;  // as RowGroupFacts::exact
};

using Batch = std::span<const RowGroup>;

}  // namespace troupe
