// How many answers a request asks for, as far as its body tells: the places that it takes in the
// model's queue; whether as a stream, and within which time. For a request that waits while there
// is no model to read it. Pure.
#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <string_view>

namespace troupe {

// `endpoint` is one of service_paths.h. At least 1; also of a body that will be refused.
// `together`: requests of one job that the model has at a time (text_job.h).
std::size_t CountAnswers(std::string_view endpoint, std::string_view body, std::size_t together);

bool AsksForStream(std::string_view endpoint, std::string_view body);

// Absent: it does not say, or will be refused.
std::optional<std::chrono::nanoseconds> TimeoutOf(std::string_view body);

}  // namespace troupe
