// When a node's own certificate ends, and what is to be said of that when the node starts.
#pragma once

#include <cstdint>
#include <string>

#include "base/status.h"

namespace troupe {

// Of the first certificate of a PEM file: seconds since 1970.
Result<std::int64_t> ExpiryOfCertificate(const std::string& path);

// A line where it ends within 30 days, empty where it does not. kFailedPrecondition: it has ended,
// so no peer would take this node for one.
Result<std::string> RemarkOnExpiry(const std::string& path, std::int64_t expires, std::int64_t now);

}  // namespace troupe
