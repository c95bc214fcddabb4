// The messages of a talk, one after the other, from a pipe or a terminal (terminal_reader.h).
#pragma once

#include <cstddef>
#include <string>

#include "troupe/message_lines.h"

namespace troupe {

struct TypedMessage {
  enum class Kind { kMessage, kTooLong, kInterrupted, kEnd };
  Kind kind = Kind::kMessage;
  std::string text = {};
};

class MessageReader {
 public:
  virtual ~MessageReader() = default;
  virtual TypedMessage Next() = 0;
};

// From standard input, of which no more than a message is ever in memory. Signals end the program
// as ever while it waits.
class PipedMessages final : public MessageReader {
 public:
  explicit PipedMessages(std::size_t most_bytes) : most_bytes_(most_bytes), lines_(most_bytes) {}
  TypedMessage Next() override;

 private:
  std::size_t most_bytes_;
  MessageLines lines_;
};

}  // namespace troupe
