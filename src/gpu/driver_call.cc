#include "gpu/driver_call.h"

#include <algorithm>
#include <atomic>
#include <system_error>
#include <thread>

#include "base/mutex.h"

namespace troupe {
namespace {

// A wait is counted in steps of this length: a program that was stopped and goes on has missed one.
constexpr Nanos kStep = 50'000'000;

std::atomic<bool> has_hung = false;

struct CallState {
  Mutex mu;
  CondVar ended;
  bool over TROUPE_GUARDED_BY(mu) = false;
};

bool EndsWithin(Nanos longest, CallState& state) {
  MutexLock lock(state.mu);
  for (Nanos left = longest; !state.over && left > 0; left -= std::min(left, kStep)) {
    state.ended.WaitFor(state.mu, std::min(left, kStep));
  }
  return state.over;
}

}  // namespace

Status RunWithin(Nanos longest, std::string_view what, std::function<void()> call) {
  const auto state = std::make_shared<CallState>();
  std::thread thread;
  try {
    thread = std::thread([state, call = std::move(call)] {
      call();
      MutexLock lock(state->mu);
      state->over = true;
      state->ended.NotifyAll();
    });
  } catch (const std::system_error&) {
    return Error(Code::kResourceExhausted, "{}: the system gives no thread for it", what);
  }
  if (EndsWithin(longest, *state)) {
    thread.join();
    return OkStatus();
  }
  thread.detach();
  NoteHungDriver();
  return Error(Code::kDeadlineExceeded, "{}: its driver hangs, for {:.1f} s so far", what,
               static_cast<double>(longest) * 1e-9);
}

void NoteHungDriver() { has_hung = true; }
bool DriverHasHung() { return has_hung; }

}  // namespace troupe
