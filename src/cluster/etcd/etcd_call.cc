#include "cluster/etcd/etcd_call.h"

#include <grpc/support/time.h>

#include <utility>
#include <variant>
#include <vector>

#include "cluster/face/certificate_error.h"
#include "cluster/wire/wire_text.h"

namespace troupe {
namespace {

KvFault FaultOf(const grpc::Status& status) {
  switch (status.error_code()) {
    case grpc::StatusCode::NOT_FOUND:
      return KvFault::kLeaseExpired;
    case grpc::StatusCode::OUT_OF_RANGE:
      return KvFault::kCompacted;
    case grpc::StatusCode::UNAVAILABLE:
      return BlamesCertificates(status.error_message()) ? KvFault::kDistrusted
                                                        : KvFault::kUnavailable;
    case grpc::StatusCode::OK:  // of a stream that has ended without a word
    case grpc::StatusCode::CANCELLED:
    case grpc::StatusCode::DEADLINE_EXCEEDED:
      return KvFault::kUnavailable;
    default:
      return KvFault::kRefused;
  }
}

// A request and its answer.
class UnaryCall final : public EtcdCall {
 public:
  using EtcdCall::EtcdCall;

  void Start(grpc::GenericStub stub, Nanos timeout, grpc::CompletionQueue& queue) override {
    SetTimeout(timeout);
    reader_ = stub.PrepareUnaryCall(&context_, request_.method, RequestBytes(), &queue);
    reader_->StartCall();
    reader_->Finish(&response_, &status_, tag());
  }
  bool Proceed(bool) override {
    status_.ok() ? (void)TellResponse() : TellFailure();
    return false;
  }

 private:
  std::unique_ptr<grpc::ClientAsyncResponseReader<grpc::ByteBuffer>> reader_;
};

// A stream on which one request is written, and answers are read.
class StreamCall final : public EtcdCall {
 public:
  using EtcdCall::EtcdCall;

  void Start(grpc::GenericStub stub, Nanos timeout, grpc::CompletionQueue& queue) override {
    if (expects_one()) SetTimeout(timeout);
    stream_ = stub.PrepareCall(&context_, request_.method, &queue);
    stream_->StartCall(tag());
  }
  bool Proceed(bool ok) override {
    if (step_ == Step::kFinishing) {
      if (!has_ended_) TellFailure();
      return false;
    }
    if (ok && step_ == Step::kReading) has_ended_ = TellResponse();
    if (!ok || has_ended_) {
      step_ = Step::kFinishing;
      // etcd may leave its side open, which would never finish.
      if (has_ended_) context_.TryCancel();
      stream_->Finish(&status_, tag());
    } else if (step_ == Step::kStarting) {
      step_ = Step::kWriting;
      grpc::WriteOptions options;
      if (expects_one()) options.set_last_message();
      stream_->Write(RequestBytes(), options, tag());
    } else {
      step_ = Step::kReading;
      stream_->Read(&response_, tag());
    }
    return true;
  }

 private:
  enum class Step { kStarting, kWriting, kReading, kFinishing };

  bool expects_one() const { return request_.call == EtcdRequest::Call::kStreamOfOne; }

  Step step_ = Step::kStarting;
  bool has_ended_ = false;  // and has been told
  std::unique_ptr<grpc::GenericClientAsyncReaderWriter> stream_;
};

}  // namespace

EtcdCall::EtcdCall(EtcdRequest request, Tell tell)
    : request_(std::move(request)), tell_(std::move(tell)) {
  // An etcd without a quorum then answers at once, instead of letting a watch wait in silence.
  context_.AddMetadata("hasleader", "true");
}

void EtcdCall::SetTimeout(Nanos timeout) {
  context_.set_deadline(
      gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC), gpr_time_from_nanos(timeout, GPR_TIMESPAN)));
}

grpc::ByteBuffer EtcdCall::RequestBytes() const {
  const grpc::Slice slice(request_.bytes);
  return grpc::ByteBuffer(&slice, 1);
}

bool EtcdCall::TellResponse() {
  std::vector<grpc::Slice> slices;
  KvEvent event = {.what = KvFailure{.message = "etcd: an answer that cannot be read"}};
  if (response_.Dump(&slices).ok()) {
    std::string bytes;
    for (const grpc::Slice& slice : slices) {
      bytes.append(reinterpret_cast<const char*>(slice.begin()), slice.size());
    }
    event = request_.read(bytes);
  }
  const auto* changes = std::get_if<WatchChanges>(&event.what);
  if (changes != nullptr && changes->changes.empty()) return false;
  const bool ends = changes == nullptr;
  tell_(std::move(event));
  return ends;
}

void EtcdCall::TellFailure() {
  const std::string message =
      status_.ok() ? std::string("the stream has ended") : status_.error_message();
  tell_({.what = KvFailure{.fault = FaultOf(status_), .message = AsPeerText("etcd: " + message)}});
}

std::unique_ptr<EtcdCall> MakeEtcdCall(EtcdRequest request, EtcdCall::Tell tell) {
  if (request.call == EtcdRequest::Call::kUnary) {
    return std::make_unique<UnaryCall>(std::move(request), std::move(tell));
  }
  return std::make_unique<StreamCall>(std::move(request), std::move(tell));
}

}  // namespace troupe
