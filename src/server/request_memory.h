// What requests keep from when they are read to the end of their answers, of a part of the memory
// plan that is theirs together: what a response repeats, the tools by which it is read. Each takes
// its share before it is asked of the model, or is refused. Thread-safe.
#pragma once

#include <cstddef>
#include <memory>

#include "base/bytes.h"
#include "base/status.h"
#include "server/http/byte_budget.h"

namespace troupe {

// That a server sets aside for all of them.
inline constexpr Bytes kKeptByRequests = 8_MiB;

class RequestMemory {
 public:
  explicit RequestMemory(Bytes most)
      : most_(most), left_(std::make_shared<ByteBudget>(most.count())) {}

  // Given back when the last one who has it lets go of it.
  using Share = std::shared_ptr<HeldBytes>;
  // kInvalidArgument: more than all of it. kUnavailable, with a time to come again: others have it.
  Result<Share> Take(Bytes bytes) const;

  // What the second of these says.
  static Status NoRoom();

  Bytes taken() const { return most_ - Bytes(left_->left()); }

 private:
  const Bytes most_;
  const std::shared_ptr<ByteBudget> left_;
};

}  // namespace troupe
