// Certificates for the nodes of a cluster: an authority of its own, and for each node a certificate
// that it has signed, with its key. Who has those of a larger authority needs none of this.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"

namespace troupe {

struct CertificateOptions {
  std::string folder;              // must exist
  std::vector<std::string> hosts;  // by which peers dial them: names or numbers
  std::uint32_t days = 825;        // that a node's certificate is valid
};

// Writes HOST.pem and HOST.key for each; authority.pem and authority.key too, if they are not
// there: a node that comes later gets its certificate by the same authority. Keys are readable for
// nobody else. kFailedPrecondition: a host has files already. Says which were written.
Result<std::vector<std::string>> WriteCertificates(const CertificateOptions& options);

// What the first certificate of a PEM file is good for: names and numbers, as it lists them.
Result<std::vector<std::string>> HostsOfCertificate(const std::string& path);

}  // namespace troupe
