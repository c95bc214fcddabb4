// By which of its names and addresses a node tells others to dial it, where nobody has said so: one
// that its certificate names, since they hang up at any other one.
#pragma once

#include <string>

#include "base/status.h"

namespace troupe {

// `found` is this machine's address. It stays if the certificate (PEM) names it; if not, it is the
// first host of the certificate that is this machine. kInvalidArgument: none is, in one line that
// says what to give in its place.
Result<std::string> HostToAnnounce(const std::string& found, const std::string& certificate);

}  // namespace troupe
