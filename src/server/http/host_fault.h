// Why a host's name led to no address, in our words rather than the resolver's.
#pragma once

#include <fmt/format.h>

#include <boost/asio/error.hpp>
#include <string>
#include <string_view>

namespace troupe {

inline std::string HostFault(std::string_view host, const boost::system::error_code& error) {
  namespace known = boost::asio::error;
  if (error == known::host_not_found || error == known::no_data) {
    return fmt::format("there is no host '{}'", host);
  }
  if (error == known::host_not_found_try_again) {
    return fmt::format("host '{}': its name cannot be looked up now", host);
  }
  return fmt::format("host '{}': {}", host, error.message());
}

}  // namespace troupe
