// What names and texts in messages may hold, so that they can be logged and counted as they are.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "base/status.h"

namespace troupe {

inline constexpr std::size_t kMaxPeerNameBytes = 255;
inline constexpr std::size_t kMaxPeerTextBytes = 1024;

// A name of a cluster or a node, or an address: 1 to 255 printable ASCII characters, no space.
// `what` begins the error: "node: 0 characters found, 1 to 255 expected".
Status CheckPeerName(std::string_view what, std::string_view name);

// Whether a text is short enough and without control characters, so that it stays on its line.
bool IsPeerText(std::string_view text);

// Makes it one: control characters become spaces, and what is too long is cut between characters.
std::string AsPeerText(std::string_view text);

}  // namespace troupe
