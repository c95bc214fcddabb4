// Whether a connection failed because one end does not trust the other, and why. gRPC tells that by
// its text alone.
#pragma once

#include <algorithm>
#include <array>
#include <string_view>

namespace troupe {

inline constexpr std::string_view kPeerName = "Peer name";

inline bool BlamesCertificates(std::string_view message) {
  constexpr std::array<std::string_view, 3> kWords = {"certificate", "handshake failed", kPeerName};
  return std::ranges::any_of(kWords, [message](std::string_view words) {
    return message.find(words) != std::string_view::npos;
  });
}

// The right authority may have signed it: it is of another host than the one that was dialled.
inline bool IsOfAnotherName(std::string_view message) {
  return message.find(kPeerName) != std::string_view::npos;
}

// The other one has read this node's certificate and sent the alert: by its clock that has expired.
// Where this node finds the other's expired, gRPC 1.51 says no more than that it was not verified.
inline bool SaysThatOwnIsExpired(std::string_view message) {
  constexpr std::array<std::string_view, 2> kAlerts = {"alert certificate expired",
                                                       "ALERT_CERTIFICATE_EXPIRED"};
  return std::ranges::any_of(kAlerts, [message](std::string_view words) {
    return message.find(words) != std::string_view::npos;
  });
}

}  // namespace troupe
