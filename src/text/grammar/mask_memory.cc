#include "text/grammar/mask_memory.h"

#include <algorithm>

#include "text/grammar/token_mask.h"

namespace troupe {

void MaskMemory::Use(TokenMasks& masks) {
  const MutexLock lock(mu_);
  if (used_.empty() || used_.front() != &masks) {
    used_.remove(&masks);
    used_.push_front(&masks);
  }
  Bytes held;
  for (const TokenMasks* one : used_) held += one->found_bytes();
  while (held > most_ && used_.size() > 1) {
    TokenMasks& oldest = *used_.back();
    held -= oldest.found_bytes();
    oldest.Forget();
    used_.pop_back();
  }
}

void MaskMemory::Remove(TokenMasks& masks) {
  const MutexLock lock(mu_);
  used_.remove(&masks);
}

}  // namespace troupe
