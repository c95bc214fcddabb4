#include "cluster/etcd/etcd_store.h"

#include <grpcpp/alarm.h>

#include <map>
#include <thread>
#include <utility>
#include <variant>
#include <vector>

#include "base/mutex.h"
#include "cluster/etcd/etcd_call.h"
#include "cluster/etcd/etcd_channel.h"
#include "cluster/grpc/grpc_use.h"

namespace troupe {

class EtcdStore::Impl {
 public:
  Impl(const EtcdOptions& options, const std::shared_ptr<grpc::ChannelCredentials>& credentials,
       Listener listener)
      : timeout_(options.timeout), listener_(std::move(listener)) {
    for (const std::string& endpoint : options.endpoints) {
      channels_.push_back(ConnectTo(endpoint, credentials));
    }
    thread_ = std::thread([this] { Main(); });
  }

  ~Impl() {
    {
      MutexLock lock(mu_);
      closing_ = true;
      for (const auto& [tag, call] : calls_) call->Cancel();
      wake_.Set(&queue_, gpr_now(GPR_CLOCK_MONOTONIC), nullptr);
    }
    thread_.join();
  }

  void Begin(KvAsk ask, const KvRequest& request) {
    MutexLock lock(mu_);
    const bool is_watch = std::holds_alternative<WatchPrefix>(request);
    std::unique_ptr<EtcdCall> call =
        MakeEtcdCall(ToEtcd(request), [this, ask, is_watch, at = endpoint_](KvEvent event) {
          Tell(ask, is_watch, at, std::move(event));
        });
    EtcdCall* started = call.get();
    calls_.emplace(started, std::move(call));
    if (is_watch) watches_.emplace(ask, started);
    started->Start(grpc::GenericStub(channels_[endpoint_]), timeout_, queue_);
  }

  void End(KvAsk ask) {
    MutexLock lock(mu_);
    const auto watch = watches_.find(ask);
    if (watch == watches_.end()) return;
    watch->second->Cancel();
    watches_.erase(watch);
  }

 private:
  // On the queue's thread. `at` is the endpoint that the call went to.
  void Tell(KvAsk ask, bool is_watch, std::size_t at, KvEvent event) {
    event.ask = ask;
    const auto* failure = std::get_if<KvFailure>(&event.what);
    {
      MutexLock lock(mu_);
      if (closing_ || (is_watch && !watches_.contains(ask))) return;  // nobody waits for it
      if (is_watch && failure != nullptr) watches_.erase(ask);
      const bool is_away = failure != nullptr && (failure->fault == KvFault::kUnavailable ||
                                                  failure->fault == KvFault::kDistrusted);
      if (is_away && endpoint_ == at) {
        endpoint_ = (at + 1) % channels_.size();
      }
    }
    listener_(event);
  }

  void Main() {
    void* tag = nullptr;
    bool ok = false;
    while (queue_.Next(&tag, &ok)) {
      auto* call = static_cast<EtcdCall*>(tag);  // null: the destructor's wake
      const bool goes_on = call != nullptr && call->Proceed(ok);
      MutexLock lock(mu_);
      if (call != nullptr && !goes_on) calls_.erase(call);
      // Not before: the last steps of a call go through the queue as well.
      if (closing_ && calls_.empty() && !std::exchange(shut_, true)) queue_.Shutdown();
    }
  }

  const GrpcUse use_;  // of all below
  const Nanos timeout_;
  const Listener listener_;
  std::vector<EtcdChannel> channels_;
  grpc::CompletionQueue queue_;
  grpc::Alarm wake_;
  Mutex mu_;
  std::size_t endpoint_ TROUPE_GUARDED_BY(mu_) = 0;
  std::map<EtcdCall*, std::unique_ptr<EtcdCall>> calls_ TROUPE_GUARDED_BY(mu_);
  std::map<KvAsk, EtcdCall*> watches_ TROUPE_GUARDED_BY(mu_);  // that have not ended
  bool closing_ TROUPE_GUARDED_BY(mu_) = false;
  bool shut_ TROUPE_GUARDED_BY(mu_) = false;
  std::thread thread_;
};

Result<std::unique_ptr<EtcdStore>> EtcdStore::Open(const EtcdOptions& options, Listener listener) {
  if (options.endpoints.empty()) return InvalidArgument("etcd: no endpoints");
  QuietGrpc();
  TROUPE_ASSIGN_OR_RETURN(const auto credentials, CredentialsFor(options.tls));
  return std::unique_ptr<EtcdStore>(
      new EtcdStore(std::make_unique<Impl>(options, credentials, std::move(listener))));
}

EtcdStore::EtcdStore(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

EtcdStore::~EtcdStore() = default;

void EtcdStore::Ask(KvAsk ask, KvRequest request) {
  if (const auto* end = std::get_if<EndWatch>(&request)) {
    impl_->End(end->watch);
  } else {
    impl_->Begin(ask, request);
  }
}

}  // namespace troupe
