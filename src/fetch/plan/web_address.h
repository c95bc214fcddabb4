// Addresses as far as safety asks: whom a token may be told, and where a reply may send us. Pure.
#pragma once

#include <string>
#include <string_view>

#include "base/status.h"

namespace troupe {

// "https://host:443" of an address: scheme, host and port, in lower case. kInvalidArgument: it is
// no address of http or https, or it carries a user's name.
Result<std::string> OriginOf(std::string_view address);

// Whether a reply from `from` may send us on to `to`: never from https to http.
Status CheckRedirect(std::string_view from, std::string_view to);

// `path` with what an address cannot hold as "%20"; slashes stay.
std::string EncodedPath(std::string_view path);

}  // namespace troupe
