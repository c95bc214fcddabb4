// The two sides that can choose the tokens of an answer.
#pragma once

#include <cstdint>
#include <string_view>

namespace troupe {

enum class Side : std::uint8_t { kEnd, kCloud };

constexpr Side Other(Side side) { return side == Side::kEnd ? Side::kCloud : Side::kEnd; }

constexpr std::string_view Name(Side side) { return side == Side::kEnd ? "end" : "cloud"; }

}  // namespace troupe
