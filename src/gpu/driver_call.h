// Calls into a driver that may never come back: while it is loaded, while it lists its devices or
// compiles. Each is made on a thread of its own that is waited for no longer than the caller likes.
// A device that is open has a thread for its work instead (worker.h).
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string_view>
#include <type_traits>
#include <utility>

#include "base/clock.h"
#include "base/status.h"

namespace troupe {

// kDeadlineExceeded: the call has not come back, and its thread is left to itself; or one that was
// left before has not, and this one was not made. Time in which the whole program stood still does
// not count. What the call throws is thrown.
Status RunWithin(Nanos longest, std::string_view what, std::function<void()> call);

// What `call` gives, a Status or a Result. It must own what it uses: who asked may be gone.
template <typename Call>
std::invoke_result_t<Call> CallWithin(Nanos longest, std::string_view what, Call call) {
  struct Shared {
    Call make;
    std::optional<std::invoke_result_t<Call>> given;
  };
  auto shared = std::make_shared<Shared>(Shared{std::move(call), std::nullopt});
  TROUPE_RETURN_IF_ERROR(
      RunWithin(longest, what, [shared] { shared->given.emplace(shared->make()); }));
  return *std::move(shared->given);
}

// Calls that were left to themselves and have not come back.
int DriverCallsOut();
// That a thread was left to a driver: a program should then end by _Exit, since what drivers do at
// an ordinary end may wait for that thread.
void NoteHungDriver();
bool DriverHasHung();

}  // namespace troupe
