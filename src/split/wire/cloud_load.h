// What a cloud tells of its load, in each hello and behind each answer: by it an end decides what
// it sends there next. Pure. The format is docs/formats/end-cloud.md's.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/json_value.h"

namespace troupe {

struct CloudLoad {
  // Before a new answer of the end that is told: answers under way or waiting, whoever's, and
  // tokens of their prompts that are still to be read.
  std::uint32_t under_way = 0;
  std::size_t to_read = 0;
  // What it has measured; 0: nothing yet.
  double answer_seconds = 0;  // from the beginning of an answer to its end
  double read_seconds = 0;    // a token of a prompt, among many
  double token_seconds = 0;   // a token of an answer, beside those that are under way

  bool operator==(const CloudLoad&) const = default;
};

Json Record(const CloudLoad& load);
CloudLoad ReadCloudLoad(const JsonValue& json);  // in a reader of JSON (base/json_value.h)

}  // namespace troupe
