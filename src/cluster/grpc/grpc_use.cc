#include "cluster/grpc/grpc_use.h"

#include <grpc/grpc.h>
#include <grpc/support/log.h>

#include <atomic>
#include <chrono>
#include <string_view>
#include <thread>

#include "base/log.h"

namespace troupe {
namespace {

using std::chrono::milliseconds;

// Longer than the longest pause that a channel of ours makes between two attempts.
constexpr milliseconds kLongestWait(4000);

std::atomic<int> uses = 0;

void TakeLine(gpr_log_func_args* line) {
  const std::string_view message(line->message);
  if (message.starts_with("assertion failed")) {
    LogWarning("gRPC: {}:{}: {}", line->file, line->line, message);
  }
}

}  // namespace

void QuietGrpc() {
  gpr_set_log_verbosity(GPR_LOG_SEVERITY_ERROR);
  gpr_set_log_function(TakeLine);
}

GrpcUse::GrpcUse() { ++uses; }

GrpcUse::~GrpcUse() {
  if (--uses > 0) return;
  const auto end = std::chrono::steady_clock::now() + kLongestWait;
  // gRPC has nothing to wait by.
  while (grpc_is_initialized() != 0 && uses == 0 && std::chrono::steady_clock::now() < end) {
    std::this_thread::sleep_for(milliseconds(1));
  }
}

}  // namespace troupe
