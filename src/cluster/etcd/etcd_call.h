// One call to etcd on a completion queue, from its start to its last step. For this folder's
// sources: it includes gRPC.
#pragma once

#include <grpcpp/channel.h>
#include <grpcpp/client_context.h>
#include <grpcpp/completion_queue.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/support/byte_buffer.h>

#include <functional>
#include <memory>
#include <string>

#include "base/clock.h"
#include "cluster/etcd/etcd_messages.h"

namespace troupe {

using EtcdChannel = std::shared_ptr<grpc::Channel>;

// A call is its own tag in the queue, one step at a time.
class EtcdCall {
 public:
  // Told of each answer, or of the failure that ends the call.
  using Tell = std::function<void(KvEvent)>;

  EtcdCall(EtcdRequest request, Tell tell);
  virtual ~EtcdCall() = default;

  // A call whose answers have no end has no timeout.
  virtual void Start(grpc::GenericStub stub, Nanos timeout, grpc::CompletionQueue& queue) = 0;
  // What the queue says of the step under way. False: that was the last one.
  virtual bool Proceed(bool ok) = 0;
  // Thread-safe; the call still takes its last steps.
  void Cancel() { context_.TryCancel(); }

 protected:
  void* tag() { return this; }
  void SetTimeout(Nanos timeout);
  grpc::ByteBuffer RequestBytes() const;
  // Tells what the response says. Whether that is the end of the call.
  bool TellResponse();
  void TellFailure();

  const EtcdRequest request_;
  const Tell tell_;
  grpc::ClientContext context_;
  grpc::ByteBuffer response_;
  grpc::Status status_;
};

std::unique_ptr<EtcdCall> MakeEtcdCall(EtcdRequest request, EtcdCall::Tell tell);

}  // namespace troupe
