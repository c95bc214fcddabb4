// The port KvStore on a real etcd (3.4 and later) through its gRPC API. One thread of its own waits
// for etcd and tells what it says. Nothing is tried twice here: an ask that fails moves the next
// ones to the next endpoint, and who asked decides what to ask again.
#pragma once

#include <functional>
#include <memory>

#include "base/status.h"
#include "cluster/face/etcd_options.h"
#include "cluster/members/kv_store.h"

namespace troupe {

class EtcdStore final : public KvStore {
 public:
  // Called on the store's thread, where nothing may wait for long.
  using Listener = std::function<void(const KvEvent&)>;

  // Reads the files of TLS; does not wait for etcd, which may come later.
  static Result<std::unique_ptr<EtcdStore>> Open(const EtcdOptions& options, Listener listener);
  // Gives up what is under way without telling; not on the store's thread.
  ~EtcdStore() override;

  // Thread-safe.
  void Ask(KvAsk ask, KvRequest request) override;

 private:
  class Impl;

  explicit EtcdStore(std::unique_ptr<Impl> impl);

  std::unique_ptr<Impl> impl_;
};

}  // namespace troupe
