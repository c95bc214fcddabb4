// Any bytes as a message of a peer: one that reads the same after it is written again, or an error
// in one line; never a crash, a read past the end or a large allocation.
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/check.h"
#include "cluster/wire/peer_message.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto bytes = std::as_bytes(std::span(data, size));
  const std::vector<std::byte> frame(bytes.begin(), bytes.end());  // aligned as frames are
  const auto message = troupe::DecodePeerMessage(frame);
  if (!message.ok()) {
    TROUPE_CHECK(message.status().message().find('\n') == std::string::npos);
    return 0;
  }
  TROUPE_CHECK(troupe::ToString(*message).find('\n') == std::string::npos);
  const std::vector<std::byte> again = troupe::EncodePeerMessage(*message);
  TROUPE_CHECK(again.size() <= frame.size());
  const auto read = troupe::DecodePeerMessage(again);
  TROUPE_CHECK(read.ok() && *read == *message);
  return 0;
}
