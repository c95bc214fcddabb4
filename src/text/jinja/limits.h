// What a template may use up, and the meter that counts it. A template comes from a model's file,
// which anybody may have made: one that loops for ever or doubles a text again and again must end
// with an error, soon and without having taken the memory.
#pragma once

#include <cstddef>

#include "base/status.h"

namespace troupe::jinja {

struct RenderLimits {
  std::size_t steps = 5'000'000;  // nodes run, items visited, kilobytes moved
  std::size_t depth = 300;        // nested expressions, statements and macro calls
  std::size_t output_bytes = std::size_t{64} << 20;  // of the rendered text
  std::size_t string_bytes = std::size_t{16} << 20;  // of any one string in between
  std::size_t list_items = 100'000;                  // of any one list, as Jinja's sandbox has it
  std::size_t made_bytes = std::size_t{512} << 20;   // of all strings and lists together
};

class Meter {
 public:
  explicit Meter(const RenderLimits& limits) : limits_(limits) {}

  const RenderLimits& limits() const { return limits_; }

  Status Steps(std::size_t count = 1) {
    if (count <= limits_.steps - steps_) [[likely]] {
      steps_ += count;
      return OkStatus();
    }
    return Error(Code::kResourceExhausted, "more than {} steps", limits_.steps);
  }
  // Reading all of a text of that size once.
  Status Reads(std::size_t bytes) { return Steps(1 + bytes / 64); }

  // Looking for a pattern in a text, at its worst.
  Status Searches(std::size_t text, std::size_t pattern) {
    return Steps(1 + text / 64 + (text / 64) * (pattern / 64));
  }

  // Before a string, or a list, of that size is made.
  Status MakesString(std::size_t bytes) {
    if (bytes > limits_.string_bytes) {
      return Error(Code::kResourceExhausted, "a string of {} bytes, at most {} allowed", bytes,
                   limits_.string_bytes);
    }
    TROUPE_RETURN_IF_ERROR(Reads(bytes));
    return Makes(bytes);
  }
  Status MakesList(std::size_t items) {
    if (items > limits_.list_items) {
      return Error(Code::kResourceExhausted, "a list of {} items, at most {} allowed", items,
                   limits_.list_items);
    }
    TROUPE_RETURN_IF_ERROR(Steps(1 + items));
    return Makes(items * 32);
  }

 private:
  Status Makes(std::size_t bytes) {
    if (bytes <= limits_.made_bytes - made_) [[likely]] {
      made_ += bytes;
      return OkStatus();
    }
    return Error(Code::kResourceExhausted, "more than {} bytes of strings and lists",
                 limits_.made_bytes);
  }

  RenderLimits limits_;
  std::size_t steps_ = 0;
  std::size_t made_ = 0;
};

}  // namespace troupe::jinja
