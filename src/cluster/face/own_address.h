// Which address of this machine others reach it by.
#pragma once

#include <string>

#include "base/status.h"
#include "cluster/face/peer_address.h"

namespace troupe {

// The one from which this machine would talk to that host: nothing is sent, but names are looked
// up. kUnavailable: there is no way there.
Result<std::string> OwnHostTowards(const PeerAddress& other);

// Whether one of the host's addresses is this machine's. kUnavailable: it has none that is known.
Result<bool> IsOwnHost(const PeerAddress& address);

// Whether this machine knows the host by its loopback alone, where others may know it by an address
// of the network: so Debian writes a machine's own name into /etc/hosts. kUnavailable: not at all.
Result<bool> IsLoopbackHere(const PeerAddress& address);

}  // namespace troupe
