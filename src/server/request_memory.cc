#include "server/request_memory.h"

#include <utility>

namespace troupe {

Result<RequestMemory::Share> RequestMemory::Take(Bytes bytes) const {
  if (bytes > most_) {
    return InvalidArgument(
        "the request takes {} until it is answered, expected at most the {} that all requests have",
        ToString(bytes), ToString(most_));
  }
  auto share = std::make_shared<HeldBytes>(left_);
  if (share->GrowTo(bytes.count())) return share;
  return NoRoom();
}

Status RequestMemory::NoRoom() {
  constexpr double kAgainSeconds = 1;
  return Status(Code::kUnavailable, "other requests have the memory for what they keep; try again")
      .WithRetryAfter(kAgainSeconds);
}

}  // namespace troupe
