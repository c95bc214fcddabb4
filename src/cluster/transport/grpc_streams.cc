#include "cluster/transport/grpc_streams.h"

#include <grpcpp/alarm.h>
#include <grpcpp/channel.h>
#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/server.h>

#include <algorithm>
#include <latch>
#include <optional>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "cluster/grpc/grpc_use.h"
#include "cluster/transport/grpc_setup.h"
#include "cluster/transport/grpc_values.h"
#include "cluster/transport/later_tasks.h"

namespace troupe {
namespace {

constexpr char kMethod[] = "/troupe.Peers/Link";
// In the answer to a call: gRPC reports an answer even if the call has failed.
constexpr char kAnswerKey[] = "troupe-link", kAnswerValue[] = "1";

// What gRPC is given for an operation, and gives back when it is done: true, or it has failed.
struct Operation {
  std::function<void(bool)> done;
};

class GrpcStreams;

// What both ends of a call have in common. It is in its owner's table until it is over.
class Stream : public FrameStream, public std::enable_shared_from_this<Stream> {
 public:
  Stream(GrpcStreams& owner, std::shared_ptr<StreamEvents> events)
      : owner_(owner), events_(std::move(events)) {
    read_.done = [this](bool ok) { OnRead(ok); };
    written_.done = [this](bool ok) {
      if (ok) events_->OnWritten();
      Settle();
    };
  }

  void Write(Frame frame) final {
    if (!Begin()) return;
    const grpc::Slice slice = SliceOf(std::move(frame));
    StartWrite(grpc::ByteBuffer(&slice, 1), &written_);
  }

  void End(Status why) final {
    set_why(std::move(why));
    Cancel();
  }

 protected:
  virtual void StartRead(grpc::ByteBuffer* into, void* tag) = 0;
  virtual void StartWrite(const grpc::ByteBuffer& frame, void* tag) = 0;
  virtual void Cancel() = 0;
  virtual PeerIdentity Identity() const = 0;
  // No more frames will come.
  virtual void OnReadFailed() = 0;

  // Each operation begins with this and ends with Settle. False: it must not begin any more.
  bool Begin() {
    const MutexLock lock(mu_);
    under_way_ += ending_ ? 0 : 1;
    return !ending_;
  }
  void Settle();

  void Open() {
    Read();
    events_->OnOpened(Identity());
  }
  // Once what is under way is done the stream is over.
  void StopBeginning() {
    const MutexLock lock(mu_);
    ending_ = true;
  }
  void set_why(Status why) {
    const MutexLock lock(mu_);
    if (why_.ok()) why_ = std::move(why);
  }

  GrpcStreams& owner_;
  std::shared_ptr<StreamEvents> events_;

 private:
  void Read() {
    Begin();
    StartRead(&incoming_, &read_);
  }

  void OnRead(bool ok) {
    if (ok) {
      grpc::ByteBuffer bytes;
      bytes.Swap(&incoming_);
      grpc::Slice frame;
      // One copy where it came in several pieces.
      if (bytes.TrySingleSlice(&frame).ok() || bytes.DumpToSingleSlice(&frame).ok()) {
        events_->OnFrame(std::as_bytes(std::span(frame.begin(), frame.size())));
      } else {
        End(Status(Code::kDataLoss, "a frame that cannot be read"));
      }
      Read();  // after the answer, if that was sent at once: what reading has to say goes with it
    } else {
      OnReadFailed();
    }
    Settle();
  }

  Operation read_, written_;
  grpc::ByteBuffer incoming_;

  Mutex mu_;
  std::size_t under_way_ TROUPE_GUARDED_BY(mu_) = 0;
  bool ending_ TROUPE_GUARDED_BY(mu_) = false;
  Status why_ TROUPE_GUARDED_BY(mu_);
};

// The end that dials. Its own channel, and so its own connection: gRPC remembers nothing of an
// earlier attempt, and who tries again when is decided above.
class DialledStream final : public Stream {
 public:
  DialledStream(GrpcStreams& owner, std::string address, std::shared_ptr<StreamEvents> events)
      : Stream(owner, std::move(events)), address_(std::move(address)) {
    started_.done = [this](bool ok) {
      if (ok) return call_->ReadInitialMetadata(&answered_);  // one operation with this
      OnReadFailed();
      Settle();
    };
    answered_.done = [this](bool ok) {
      OnAnswer(ok);
      Settle();
    };
    finished_.done = [this](bool) {
      set_why(StatusOf(status_));
      Settle();
    };
  }

  void Dial(const std::shared_ptr<grpc::Channel>& channel, grpc::CompletionQueue* queue) {
    stub_ = std::make_unique<grpc::GenericStub>(channel);
    call_ = stub_->PrepareCall(&context_, kMethod, queue);
    Begin();
    call_->StartCall(&started_);
  }

 private:
  void OnAnswer(bool ok) {
    const auto& answer = context_.GetServerInitialMetadata();
    const auto found = answer.find(kAnswerKey);
    if (ok && found != answer.end() && found->second == kAnswerValue) return Open();
    OnReadFailed();  // a server that is no peer may not end the call: the link's patience does
  }
  void OnReadFailed() override {
    Begin();
    StopBeginning();
    call_->Finish(&status_, &finished_);
  }
  void StartRead(grpc::ByteBuffer* into, void* tag) override { call_->Read(into, tag); }
  void StartWrite(const grpc::ByteBuffer& frame, void* tag) override { call_->Write(frame, tag); }
  void Cancel() override { context_.TryCancel(); }
  PeerIdentity Identity() const override { return IdentityOf(address_, context_.auth_context()); }

  const std::string address_;
  std::unique_ptr<grpc::GenericStub> stub_;
  grpc::ClientContext context_;
  std::unique_ptr<grpc::GenericClientAsyncReaderWriter> call_;
  grpc::Status status_;
  Operation started_, answered_, finished_;
};

// The end that was dialled. First it waits for any peer.
class AcceptedStream final : public Stream {
 public:
  explicit AcceptedStream(GrpcStreams& owner) : Stream(owner, nullptr) {
    requested_.done = [this](bool ok) { OnRequested(ok); };
    answered_.done = [this](bool ok) {
      ok ? Open() : OnReadFailed();
      Settle();
    };
    refused_.done = [this](bool) { Settle(); };
  }

  void Wait(grpc::AsyncGenericService& service, grpc::ServerCompletionQueue* queue) {
    Begin();
    service.RequestCall(&context_, &call_, queue, queue, &requested_);
  }

 private:
  void OnRequested(bool ok);
  void Refuse(const grpc::Status& why) {
    Begin();
    StopBeginning();
    call_.Finish(why, &refused_);
  }
  void OnReadFailed() override {
    StopBeginning();
    set_why(Status(Code::kUnavailable, "the peer ended the link, or was lost"));
    context_.TryCancel();
  }
  void StartRead(grpc::ByteBuffer* into, void* tag) override { call_.Read(into, tag); }
  void StartWrite(const grpc::ByteBuffer& frame, void* tag) override { call_.Write(frame, tag); }
  void Cancel() override { context_.TryCancel(); }
  PeerIdentity Identity() const override {
    return IdentityOf(AddressOfPeerUri(context_.peer()), context_.auth_context());
  }

  grpc::GenericServerContext context_;
  grpc::GenericServerAsyncReaderWriter call_{&context_};
  Operation requested_, answered_, refused_;
};

class GrpcStreams final : public FrameStreams {
 public:
  explicit GrpcStreams(GrpcSetup setup) : setup_(std::move(setup)) {
    woken_.done = [this](bool) { RunPosted(); };
  }
  ~GrpcStreams() override {
    if (server_) Stop();
  }

  Status Listen() {
    TROUPE_ASSIGN_OR_RETURN(port_, setup_.Listen(service_, queue_, server_));
    return OkStatus();
  }

  void Start(Accept accept) override {
    accept_ = std::move(accept);
    WaitForPeer();
    thread_ = std::thread([this] { Run(); });
  }

  void Post(std::function<void()> task) override {
    const MutexLock lock(mu_);
    if (shut_) return;
    posted_.push_back(std::move(task));
    if (std::exchange(waking_, true)) return;
    wake_.Set(queue_.get(), gpr_now(GPR_CLOCK_MONOTONIC), &woken_);
  }

  void CallAt(Nanos when, std::function<void()> task) override {
    if (!stopping_) later_.Add(when, std::move(task));
  }

  std::shared_ptr<FrameStream> Connect(const std::string& address,
                                       std::shared_ptr<StreamEvents> events) override {
    const auto stream = std::make_shared<DialledStream>(*this, address, std::move(events));
    live_.emplace(stream.get(), stream);
    stream->Dial(setup_.ChannelTo(address), queue_.get());
    if (stopping_) stream->End(Stopping());
    return stream;
  }

  std::uint16_t port() const override { return port_; }

  // Below: for streams, on the thread.
  const Accept& accept() const { return accept_; }
  void WaitForPeer() {
    if (stopping_) return;
    const auto stream = std::make_shared<AcceptedStream>(*this);
    waiting_ = stream;
    stream->Wait(service_, queue_.get());
  }
  // The stream that waited has a peer, or will never have one.
  void StopWaiting(bool has_peer) {
    auto& list = has_peer ? live_[waiting_.get()] : gone_;
    list = std::exchange(waiting_, nullptr);
  }
  // It is inside an operation of its own.
  void Forget(Stream* stream) { gone_ = std::move(live_.extract(stream).mapped()); }
  bool stopping() const { return stopping_; }

 private:
  static Status Stopping() { return Status(Code::kCancelled, "this node is stopping"); }

  void Run() {
    void* tag = nullptr;
    bool ok = false;
    for (;;) {
      const auto next = queue_->AsyncNext(&tag, &ok, NextTime());
      if (next == grpc::CompletionQueue::SHUTDOWN) return;
      if (next == grpc::CompletionQueue::GOT_EVENT) static_cast<Operation*>(tag)->done(ok);
      gone_.reset();
      later_.RunDue(clock_.Now());
      if (may_shut_ && live_.empty() && !waiting_) ShutQueue();
    }
  }

  gpr_timespec NextTime() const {
    const std::optional<Nanos> next = later_.next();
    if (!next) return gpr_inf_future(GPR_CLOCK_MONOTONIC);
    const Nanos wait = std::max<Nanos>(0, *next - clock_.Now());
    return gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC), gpr_time_from_nanos(wait, GPR_TIMESPAN));
  }

  void RunPosted() {
    std::vector<std::function<void()>> tasks;
    {
      const MutexLock lock(mu_);
      waking_ = false;
      tasks.swap(posted_);
    }
    for (const auto& task : tasks) task();
  }

  // The order is gRPC's: first the server, then the queue, once nothing can begin on it.
  void Stop() {
    if (!thread_.joinable()) thread_ = std::thread([this] { Run(); });
    std::latch told(1);
    Post([this, &told] {
      stopping_ = true;
      later_.Clear();
      for (const auto& [key, stream] : live_) stream->End(Stopping());
      told.count_down();
    });
    told.wait();
    server_->Shutdown(std::chrono::system_clock::now());  // ends what is still open
    Post([this] { may_shut_ = true; });
    thread_.join();
  }

  void ShutQueue() {
    const MutexLock lock(mu_);
    if (std::exchange(shut_, true)) return;
    queue_->Shutdown();
  }

  const GrpcUse use_;  // of all below
  const GrpcSetup setup_;
  const MonotonicClock clock_;
  grpc::AsyncGenericService service_;
  std::unique_ptr<grpc::ServerCompletionQueue> queue_;
  std::unique_ptr<grpc::Server> server_;
  std::uint16_t port_ = 0;
  Accept accept_;

  // The thread's own.
  std::unordered_map<Stream*, std::shared_ptr<Stream>> live_;
  std::shared_ptr<Stream> waiting_;  // for a peer
  std::shared_ptr<Stream> gone_;     // has ended in the operation that is being done
  LaterTasks later_;
  bool stopping_ = false, may_shut_ = false;

  Mutex mu_;
  std::vector<std::function<void()>> posted_ TROUPE_GUARDED_BY(mu_);
  bool waking_ TROUPE_GUARDED_BY(mu_) = false;
  bool shut_ TROUPE_GUARDED_BY(mu_) = false;
  grpc::Alarm wake_;
  Operation woken_;

  std::thread thread_;
};

void Stream::Settle() {
  Status why;
  {
    const MutexLock lock(mu_);
    if (--under_way_ > 0 || !ending_) return;
    why = why_;
  }
  owner_.Forget(this);
  if (events_) events_->OnEnded(why);
}

void AcceptedStream::OnRequested(bool ok) {
  owner_.StopWaiting(ok);
  if (!ok) return;  // the server has shut down
  owner_.WaitForPeer();
  if (context_.method() != kMethod || owner_.stopping()) {
    Refuse({grpc::StatusCode::UNIMPLEMENTED, "not a method of a peer"});
  } else if (events_ = owner_.accept()(shared_from_this()); !events_) {
    Refuse({grpc::StatusCode::RESOURCE_EXHAUSTED, "the peer has as many links as it takes"});
  } else {
    context_.AddInitialMetadata(kAnswerKey, kAnswerValue);
    Begin();
    call_.SendInitialMetadata(&answered_);
  }
  Settle();
}

}  // namespace

Result<std::unique_ptr<FrameStreams>> ListenWithGrpc(const TransportOptions& options) {
  TROUPE_ASSIGN_OR_RETURN(GrpcSetup setup, GrpcSetup::For(options));
  auto streams = std::make_unique<GrpcStreams>(std::move(setup));
  TROUPE_RETURN_IF_ERROR(streams->Listen());
  return std::unique_ptr<FrameStreams>(std::move(streams));
}

}  // namespace troupe
