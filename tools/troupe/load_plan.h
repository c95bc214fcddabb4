// Which requests a load test sends, and when: drawn from a seed, so that two servers are asked the
// same. Sends nothing (server_load.h does). Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace troupe {

struct LengthRange {
  std::size_t least = 0, most = 0;

  bool operator==(const LengthRange&) const = default;
};
// "32..256", or "64" for one length.
Result<LengthRange> ParseLengthRange(const std::string& text);

struct RequestLengths {
  std::size_t prompt = 0, answer = 0;  // tokens

  bool operator==(const RequestLengths&) const = default;
};
// Of recorded requests: CSV whose first line names columns ContextTokens and GeneratedTokens, or a
// JSON object a line with input_length and output_length. At least one; `name` is for errors.
Result<std::vector<RequestLengths>> ParseLengths(const std::string& name, std::string_view text);

struct LoadOptions {
  std::size_t requests = 0;
  LengthRange prompt{.least = 32, .most = 256};
  std::size_t answer = 64;
  std::vector<RequestLengths> lengths;  // drawn from in place of the two above, if there are any
  std::optional<double> rate;           // requests a second arrive at random; none: at once
  std::optional<std::size_t> context;   // what a request must fit into
  std::uint64_t seed = 1;
};

struct PlannedRequest {
  double at = 0;  // seconds after the start
  RequestLengths lengths;
  bool cut = false;        // the lengths drawn did not fit into the context
  std::uint64_t seed = 0;  // of its prompt and its answer

  bool operator==(const PlannedRequest&) const = default;
};

// In the order of their times.
std::vector<PlannedRequest> PlanLoad(const LoadOptions& options);

std::size_t CutIn(std::span<const PlannedRequest> plan);

// Cut to a context: the answer to half of it at most, the prompt to the rest.
RequestLengths FitTo(RequestLengths lengths, std::size_t context);

}  // namespace troupe
