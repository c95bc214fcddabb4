// Who is at the other end of a link.
#pragma once

#include <string>
#include <vector>

namespace troupe {

struct PeerIdentity {
  std::string address;             // as dialled, or where the connection came from
  bool dialled = false;            // by this node
  bool secure = false;             // by TLS: it has shown a certificate of the authority
  std::vector<std::string> names;  // in that
};

}  // namespace troupe
