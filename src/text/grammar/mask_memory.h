// Memory that the masks of several grammars share for what they have found. The grammars in use
// take it in turn: where it is full, those that were not asked for longest forget theirs and find
// it again when they are asked.
#pragma once

#include <list>

#include "base/bytes.h"
#include "base/mutex.h"

namespace troupe {

class TokenMasks;

class MaskMemory {
 public:
  explicit MaskMemory(Bytes most) : most_(most) {}

  // `masks` is asked next. The others forget until all together hold no more than there is. All
  // that share it are asked by one thread.
  void Use(TokenMasks& masks);

  // `masks` is gone. From any thread.
  void Remove(TokenMasks& masks);

 private:
  const Bytes most_;
  Mutex mu_;
  std::list<TokenMasks*> used_ TROUPE_GUARDED_BY(mu_);  // the last one used first
};

}  // namespace troupe
