// Who is at the other end of a link.
#pragma once

#include <string>
#include <vector>

namespace troupe {

struct PeerIdentity {
  std::string address;             // as dialled, or where the connection came from
  std::vector<std::string> names;  // in its certificate; none without TLS
};

}  // namespace troupe
