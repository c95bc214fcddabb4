// What an end guesses of an answer that its cloud is choosing, and what the cloud says of the
// guesses so far. Pure. The format is docs/formats/end-cloud.md's.
#pragma once

#include <troupe/request.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/json_value.h"
#include "base/status.h"

namespace troupe {

inline constexpr std::size_t kMostDraftTokens = 64;  // of an offer

struct DraftOffer {
  std::uint64_t drafts = 0;     // as the answer's request has said (cloud_request.h)
  std::uint64_t number = 0;     // of an answer's offers the one of the highest number counts
  std::size_t from = 0;         // tokens of the answer before the first guess
  std::vector<TokenId> tokens;  // kMostDraftTokens at most

  bool operator==(const DraftOffer&) const = default;
};

// Sums of one answer.
struct DraftVerdict {
  std::uint64_t checked = 0;  // guesses that passes have checked
  std::uint64_t right = 0;

  bool operator==(const DraftVerdict&) const = default;
};

std::string Encode(const DraftOffer& offer);
DraftOffer ReadDraftOffer(const JsonValue& json);  // under ReadJson or ReadBody
std::string Encode(const DraftVerdict& verdict);
Result<DraftVerdict> DecodeDraftVerdict(std::string_view text);

}  // namespace troupe
