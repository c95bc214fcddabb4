#include "cluster/face/transport_options.h"

#include <limits>

namespace troupe {

Status CheckMayTalkTo(const PeerAddress& address, const TransportOptions& options) {
  if (options.tls.any() || options.allow_plain_text || address.IsLoopback()) return OkStatus();
  return InvalidArgument(
      "'{}': without TLS peers are only at loopback addresses; give each node a certificate "
      "(`troupe cluster certificates` writes them), or allow plain text (--peer-plain-text)",
      address.host);
}

Status CheckTransportOptions(const TransportOptions& options) {
  const PeerTlsFiles& tls = options.tls;
  if (tls.any() && (tls.authority.empty() || tls.certificate.empty() || tls.key.empty())) {
    return InvalidArgument("TLS between peers needs authority, certificate and key");
  }
  const auto most_int = static_cast<std::size_t>(std::numeric_limits<int>::max());
  if (options.most_frame == 0 || options.most_frame > most_int) {
    return InvalidArgument("a frame of {} bytes at most; expected 1 to {}", options.most_frame,
                           most_int);
  }
  if (options.most_unsent < options.most_frame) {
    return InvalidArgument("{} bytes may wait to be sent, which is less than a frame's {}",
                           options.most_unsent, options.most_frame);
  }
  if (options.most_buffered / 2 < options.most_frame) {
    return InvalidArgument("{} bytes may be buffered; expected at least two frames of {}",
                           options.most_buffered, options.most_frame);
  }
  using std::chrono::hours;
  for (const auto time : {options.ping_every, options.ping_answer, options.connect_time,
                          options.first_pause, options.longest_pause}) {
    if (time.count() <= 0 || time > hours(24)) {
      return InvalidArgument("a time of {} ms; expected 1 ms to a day", time.count());
    }
  }
  return CheckMayTalkTo({.host = options.host, .port = options.port}, options);
}

}  // namespace troupe
