#include "cluster/transport/grpc_ping_for_test.h"

#include <grpcpp/channel.h>
#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/server.h>

#include <string>

#include "cluster/transport/grpc_setup.h"

namespace troupe {
namespace {

// One operation at a time is under way. False: it has failed.
bool Wait(grpc::CompletionQueue& queue) {
  void* tag = nullptr;
  bool ok = false;
  return queue.Next(&tag, &ok) && ok;
}

grpc::ByteBuffer EmptyMessage() {
  const grpc::Slice slice;
  return {&slice, 1};
}

}  // namespace

int AnswerPings(void (*tell)(std::uint16_t port)) {
  const Result<GrpcSetup> setup = GrpcSetup::For({});
  grpc::AsyncGenericService service;
  std::unique_ptr<grpc::ServerCompletionQueue> queue;
  std::unique_ptr<grpc::Server> server;
  if (!setup.ok()) return 1;
  const Result<std::uint16_t> port = setup->Listen(service, queue, server);
  if (!port.ok()) return 1;
  tell(*port);
  grpc::GenericServerContext context;
  grpc::GenericServerAsyncReaderWriter stream(&context);
  service.RequestCall(&context, &stream, queue.get(), queue.get(), &stream);
  bool ok = Wait(*queue);
  while (ok) {
    grpc::ByteBuffer message;
    stream.Read(&message, &stream);
    ok = Wait(*queue);
    if (!ok) break;
    stream.Write(message, &stream);
    ok = Wait(*queue);
  }
  return 0;
}

struct GrpcPing::Call {
  std::unique_ptr<grpc::GenericStub> stub;
  grpc::CompletionQueue queue;
  grpc::ClientContext context;
  std::unique_ptr<grpc::GenericClientAsyncReaderWriter> stream;
  bool runs = false;
};

GrpcPing::GrpcPing(std::uint16_t port) : call_(std::make_unique<Call>()) {
  const Result<GrpcSetup> setup = GrpcSetup::For({});
  if (!setup.ok()) return;
  call_->stub =
      std::make_unique<grpc::GenericStub>(setup->ChannelTo("127.0.0.1:" + std::to_string(port)));
  call_->stream = call_->stub->PrepareCall(&call_->context, "/ping/Stream", &call_->queue);
  call_->stream->StartCall(call_.get());
  call_->runs = Wait(call_->queue);
}

GrpcPing::~GrpcPing() {
  call_->context.TryCancel();
  if (call_->runs) {
    grpc::Status status;
    call_->stream->Finish(&status, call_.get());
    (void)Wait(call_->queue);
  }
  call_->queue.Shutdown();
  while (Wait(call_->queue)) {
  }
}

bool GrpcPing::Run(int times, std::vector<Nanos>& taken) {
  if (!call_->runs) return false;
  const MonotonicClock clock;
  for (int i = 0; i < times; ++i) {
    const Nanos asked = clock.Now();
    call_->stream->Write(EmptyMessage(), call_.get());
    if (!Wait(call_->queue)) return false;
    grpc::ByteBuffer message;
    call_->stream->Read(&message, call_.get());
    if (!Wait(call_->queue)) return false;
    taken.push_back(clock.Now() - asked);
  }
  return true;
}

}  // namespace troupe
