// What a request becomes at an end before anybody is asked for it: token ids, a text that is put
// together from them, and a ticket for whoever waits.
#pragma once

#include <troupe/model.h>

#include <memory>
#include <thread>

#include "api/callback_gate.h"
#include "base/clock.h"
#include "base/status.h"
#include "split/split_answer.h"

namespace troupe {

struct AnswerTicket {
  RequestId id = 0;
  std::thread::id thread;  // from which its callbacks come
};

// Fails as Model::Start would. The gate may be null; model and clock must outlive the answer.
Result<SplitAnswer::Parts> PartsOfAnswer(Model& model, Request request,
                                         std::shared_ptr<CallbackGate> gate, const Clock& clock,
                                         const AnswerTicket& ticket);

}  // namespace troupe
