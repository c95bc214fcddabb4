// Askers in one word: for tests.
#pragma once

#include <span>

#include "expert/layer_choices.h"

namespace troupe {

// Rows of the first sequence; valid until the next call.
inline std::span<const Asker> One(std::uint32_t tokens) {
  static Asker asker;
  asker = {.sequence = 0, .tokens = tokens};
  return {&asker, 1};
}

}  // namespace troupe
