#include "gpu/driver_call.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <system_error>
#include <thread>

#include "base/mutex.h"

namespace troupe {
namespace {

// A wait is counted in steps of this length: a program that was stopped and goes on has missed one.
constexpr Nanos kStep = 50'000'000;

std::atomic<bool> has_hung = false;
std::atomic<int> calls_out = 0;  // that were left to themselves and have not come back

struct CallState {
  Mutex mu;
  CondVar ended;
  bool over TROUPE_GUARDED_BY(mu) = false;
  bool is_left TROUPE_GUARDED_BY(mu) = false;
  std::exception_ptr thrown TROUPE_GUARDED_BY(mu);
};

// Also what a driver throws, for whoever asked: on this thread it would end the program.
void Make(std::function<void()> call, CallState& state) {
  std::exception_ptr thrown;
  try {
    call();
  } catch (...) {
    thrown = std::current_exception();
  }
  call = nullptr;  // what it holds goes before it counts as over
  const MutexLock lock(state.mu);
  state.thrown = thrown;
  state.over = true;
  if (state.is_left) --calls_out;
  state.ended.NotifyAll();
}

bool EndsWithin(Nanos longest, CallState& state) {
  MutexLock lock(state.mu);
  for (Nanos left = longest; !state.over && left > 0; left -= std::min(left, kStep)) {
    state.ended.WaitFor(state.mu, std::min(left, kStep));
  }
  if (!state.over) {
    state.is_left = true;
    ++calls_out;
  }
  return state.over;
}

}  // namespace

Status RunWithin(Nanos longest, std::string_view what, std::function<void()> call) {
  if (calls_out > 0) {
    return Error(Code::kDeadlineExceeded, "{}: a driver that was asked before still hangs", what);
  }
  const auto state = std::make_shared<CallState>();
  std::thread thread;
  try {
    thread =
        std::thread([state, call = std::move(call)]() mutable { Make(std::move(call), *state); });
  } catch (const std::system_error&) {
    return Error(Code::kResourceExhausted, "{}: the system gives no thread for it", what);
  }
  if (EndsWithin(longest, *state)) {
    thread.join();  // what a driver does as a thread ends must not run beside the program's end
    const MutexLock lock(state->mu);
    if (state->thrown) std::rethrow_exception(state->thrown);
    return OkStatus();
  }
  thread.detach();
  NoteHungDriver();
  return Error(Code::kDeadlineExceeded, "{}: its driver hangs, for {:.1f} s so far", what,
               static_cast<double>(longest) * 1e-9);
}

void NoteHungDriver() { has_hung = true; }
bool DriverHasHung() { return has_hung; }
int DriverCallsOut() { return calls_out; }

}  // namespace troupe
