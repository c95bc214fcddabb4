// What is told of answers beside the fields that their API has: what they cost, in words of ours
// and in those of llama-server, and how far a prompt is read. Pure.
#pragma once

#include <troupe/usage.h>

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/json.h"
#include "server/answer_format.h"

namespace troupe {

// Of several answers together: sums, and of times the longest.
Usage UsageOfAll(std::span<const ChoiceAnswer> choices);

// Sets "troupe" and "timings". `seed`: sent again, it gives the same.
void TellCosts(const Usage& usage, std::uint64_t seed, Json& json);
Json TroupeJson(const Usage& usage, std::uint64_t seed);

// The value of "prompt_progress".
Json ProgressJson(std::size_t read, std::size_t all);

}  // namespace troupe
