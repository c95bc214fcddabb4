#include "troupe/message_reader.h"

#include <iostream>
#include <optional>
#include <utility>

#include "troupe/bounded_line.h"

namespace troupe {

TypedMessage PipedMessages::Next() {
  using Kind = TypedMessage::Kind;
  bool too_long = false;
  while (const std::optional<BoundedLine> line = TakeLine(std::cin, most_bytes_)) {
    too_long = too_long || line->too_long;
    std::optional<std::string> message = lines_.Add(line->text);
    if (!message) continue;
    if (too_long || lines_.too_long()) return {.kind = Kind::kTooLong};
    return {.kind = Kind::kMessage, .text = *std::move(message)};
  }
  if (!lines_.open()) return {.kind = Kind::kEnd};
  return {.kind = Kind::kMessage, .text = lines_.Take()};
}

}  // namespace troupe
