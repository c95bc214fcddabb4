#include "cluster/face/announced_host.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <vector>

#include "cluster/face/certificates.h"
#include "cluster/face/own_address.h"
#include "cluster/face/peer_address.h"

namespace troupe {
namespace {

// A loopback's name leads each machine to itself.
bool IsThisMachine(const std::string& name, const PeerAddress& found) {
  const PeerAddress host{.host = name};
  if (host.IsLoopback() && !found.IsLoopback()) return false;
  const Result<bool> is_own = IsOwnHost(host);
  return is_own.ok() && *is_own;
}

}  // namespace

Result<std::string> HostToAnnounce(const std::string& found, const std::string& certificate) {
  TROUPE_ASSIGN_OR_RETURN(const std::vector<std::string> names, HostsOfCertificate(certificate));
  const PeerAddress own{.host = found};
  if (own.IsNamed(names)) return found;
  for (const std::string& name : names) {
    if (IsThisMachine(name, own)) return name;
  }
  if (names.empty()) return InvalidArgument("{} names no host: peers refuse it", certificate);
  const auto whole = std::ranges::find_if(
      names, [](const std::string& name) { return name.find('*') == std::string::npos; });
  return InvalidArgument("{} names {}, not {}: give --peer-address {}", certificate,
                         fmt::join(names, ", "), found, whole == names.end() ? "HOST" : *whole);
}

}  // namespace troupe
