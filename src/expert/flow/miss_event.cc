#include "expert/flow/miss_event.h"

namespace troupe {

std::string ToString(const MissEvent& event) {
  std::string line = fmt::format("{}: {} by {} token{}", ToString(event.id),
                                 event.joined ? "on its way when asked for" : "missed",
                                 event.tokens, event.tokens == 1 ? "" : "s");
  line += fmt::format("; answer: {} ({})", Name(event.answer), Name(event.why));
  line += fmt::format("; slot {}", event.slot);
  if (event.low) line += ", in its low copy";
  if (event.evicted) line += fmt::format(" of {}", ToString(*event.evicted));
  line += fmt::format("; {} there after {:.2f} ms, waited for {:.2f} ms", ToString(event.bytes),
                      event.load_seconds * 1e3, event.waited_seconds * 1e3);
  if (event.expected_seconds > 0) {
    line += fmt::format(", computed after {:.2f} ms by plan", event.expected_seconds * 1e3);
  }
  return line;
}

}  // namespace troupe
