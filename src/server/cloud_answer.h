// The strong machine's side of an answer that an end has chosen here: token ids as they come, line
// by line (docs/formats/end-cloud.md). An end that leaves cancels it. Its callbacks come from the
// engine's thread.
#pragma once

#include <troupe/model.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "server/end_drafts.h"
#include "server/end_turns.h"
#include "server/http/http_reply.h"
#include "server/pulse.h"
#include "server/reload_gate.h"
#include "server/request_memory.h"
#include "server/text_job.h"
#include "split/wire/cloud_hello.h"
#include "split/wire/cloud_request.h"
#include "split/wire/draft_offer.h"
#include "text/tokenizer.h"

namespace troupe {

// What the answers of all ends share; outlives them.
struct ForEnds {
  Pulse& pulse;  // says when to tell that an answer lives
  EndTurns& turns;
  EndDrafts& drafts;
};

struct CloudCall {
  CloudRequest asked;
  std::uint64_t end = 0;                  // that the requests of one end have in common
  RequestMemory::Share memory = nullptr;  // that the request takes until its answer has ended
  // When the request came, which may have been parked since then, or cut.
  std::chrono::steady_clock::time_point came = std::chrono::steady_clock::now();
  bool has_begun = false;                      // something was said to its end already
  std::shared_ptr<const void> rule = nullptr;  // ModelAccess::HoldRule's, until it has ended
};

// The model is used as long as anybody has it.
using SharedUse = std::shared_ptr<const ModelUse>;

// Returns before the end.
void RunCloudAnswer(SharedUse use, CloudCall call, HttpReplyPtr reply, const ForEnds& shared,
                    JobListener listener);

// Of who asks: the key tells ends apart, however it is sent. Ends without one are one.
std::uint64_t EndOf(const HttpRequest& request);

// What is before a new answer of an end. `ahead`: of ends, for which the model was not asked yet.
CloudLoad LoadOf(const ServedModel& served, const EndTurns::Ahead& ahead);

// What an end is told that asks whether this cloud is there, which serves ends.
CloudHello HelloTo(const ServedModel& served, const EndTurns::Ahead& ahead);

// An offer of that end for an answer that is being chosen, and what became of those before.
HttpResponse TakeOffer(const EndDrafts& drafts, std::uint64_t end, DraftOffer offer,
                       const Tokenizer& tokenizer);

// To ends that ask a server that was not told to serve any, and to those with another model.
HttpResponse NotForEnds();
HttpResponse OtherModel(const Status& why);

}  // namespace troupe
