// What the masks of requests' answers may take, on whatever machine: memory that a plan has room
// for (api/answer_rules.h), and work of a few milliseconds, as others wait meanwhile.
#pragma once

#include "text/grammar/token_mask.h"

namespace troupe {

// Vectors may double beyond states_bytes, which the plan has room for; the cells take half of what
// each request has. Why so much work: docs/design/server.md.
inline constexpr TokenMaskLimits kAnswerMaskLimits = {.kept = 4_MiB,
                                                      .states_kept = 2048,
                                                      .states_at_most = 16384,
                                                      .states_bytes = 6_MiB,
                                                      .stacks = {.cells = 8000, .work = 100'000},
                                                      .work = 1'000'000,
                                                      .work_a_node = 4};

}  // namespace troupe
