// Whether a connection failed because one end does not trust the other. gRPC tells that by its text
// alone.
#pragma once

#include <algorithm>
#include <array>
#include <string_view>

namespace troupe {

inline bool BlamesCertificates(std::string_view message) {
  constexpr std::array<std::string_view, 3> kWords = {"certificate", "handshake failed",
                                                      "Peer name"};
  return std::ranges::any_of(kWords, [message](std::string_view words) {
    return message.find(words) != std::string_view::npos;
  });
}

}  // namespace troupe
