// Where etcd is, and how to be let in.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/status.h"

namespace troupe {

// Files in PEM. With none of them the connection is not encrypted.
struct EtcdTls {
  std::string authority;    // who signed etcd's certificate; empty: whom this machine trusts
  std::string certificate;  // of this client, where etcd asks for one, with its key
  std::string key;

  bool enabled() const { return !(authority.empty() && certificate.empty() && key.empty()); }
  bool operator==(const EtcdTls&) const = default;
};

struct EtcdOptions {
  std::vector<std::string> endpoints;  // "host:2379"; tried in turn
  EtcdTls tls;
  Nanos timeout = 2'000'000'000;  // until an ask that is not answered fails
};

// "host:2379,[::1]:2379"
Result<std::vector<std::string>> ParseEndpoints(std::string_view text);

}  // namespace troupe
