// How a node listens and dials: address, TLS, limits and times.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>

#include "base/status.h"
#include "cluster/face/peer_address.h"

namespace troupe {

// Paths of PEM files; all or none. Both ends of a link show a certificate that this authority has
// signed. That of the end that was dialled must name the host that was dialled, as a subject's
// alternative name.
struct PeerTlsFiles {
  std::string authority, certificate, key;

  bool any() const { return !authority.empty() || !certificate.empty() || !key.empty(); }
  bool operator==(const PeerTlsFiles&) const = default;
};

struct TransportOptions {
  std::string host = "127.0.0.1";  // to listen at
  std::uint16_t port = 0;          // 0: any that is free
  PeerTlsFiles tls;
  // Without TLS only this machine's loopback is listened at and dialled, unless this is said.
  bool allow_plain_text = false;

  std::size_t most_frame = 64 << 20;  // bytes of a frame; a peer's larger one ends the link
  std::size_t most_unsent =
      128 << 20;                    // bytes of a link that may wait to be sent; twice that of all
  std::size_t most_accepted = 256;  // links that peers may open
  // That gRPC may take for what it reads and has not given out yet, of all links together. Beyond
  // it links end.
  std::size_t most_buffered = 512 << 20;

  // A silent connection is asked for a sign of life, and ends if none comes. gRPC asks at most
  // once a second.
  std::chrono::milliseconds ping_every{2000};
  std::chrono::milliseconds ping_answer{4000};
  // From dialling to an open link, and for others from connecting to saying what they want.
  std::chrono::milliseconds connect_time{5000};
  std::chrono::milliseconds first_pause{100};  // before a peer is dialled again
  std::chrono::milliseconds longest_pause{5000};
  std::chrono::milliseconds refused_pause{30'000};  // after either end has refused the other
};

// kInvalidArgument: they contradict each other, or would put plain text on a network.
Status CheckTransportOptions(const TransportOptions& options);

// Whether frames to and from that host may go unencrypted or need not to.
Status CheckMayTalkTo(const PeerAddress& address, const TransportOptions& options);

}  // namespace troupe
