// Requests and answers of the port (cluster/members/kv_store.h) as the bytes of etcd's messages,
// and back. Knows the methods, not how they are called.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "cluster/members/kv_store.h"

namespace troupe {

struct EtcdRequest {
  enum class Call {
    kUnary,
    kStreamOfOne,   // a stream, on which one answer is expected
    kStreamOfMany,  // until it fails, or an answer is a failure
  };

  Call call = Call::kUnary;
  std::string method;
  std::string bytes;
  // What an answer means, without the number of what was asked. An answer on a stream may mean no
  // changes: it confirms that the watch is there.
  std::function<KvEvent(const std::string& bytes)> read;
};

// Of anything but EndWatch, which etcd is told by ending the call.
EtcdRequest ToEtcd(const KvRequest& request);

// The first key after all that begin with `prefix`.
std::string EndOfPrefix(std::string prefix);

}  // namespace troupe
