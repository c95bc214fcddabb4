// A request of one or more answers, from its start to the last byte of its response: starts the
// generations, tells the format what comes, and the client what the format says of it. A client
// that leaves, or reads too slowly, cancels them, and so does one of several that fails, as the
// whole request is an error then. Its callbacks come from the engine's thread, which does not wait
// for what an answer's end takes: that is an errand.
#pragma once

#include <troupe/model.h>

#include <chrono>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <vector>

#include "server/answer_format.h"
#include "server/errands.h"
#include "server/http/http_reply.h"
#include "server/job_requests.h"
#include "server/pulse.h"
#include "server/reload_gate.h"
#include "server/request_memory.h"

namespace troupe {

struct JobOptions {
  bool stream = false;
  bool progress = false;  // a stream tells after each pass how much of the prompt is read
  std::optional<std::size_t> logprobs;  // other likely tokens told beside each
  bool prompt_logprobs = false;         // with `logprobs`: also of the prompt's tokens
  // Requests that the model has at a time, so as not to fill its queue: the others begin as these
  // end.
  std::size_t together = std::numeric_limits<std::size_t>::max();
  // A stream that wrote nothing from one beat to the next says that it waits; null: it waits in
  // silence. Outlives the job.
  Pulse* pulse = nullptr;
  // Time after which an answer that is not streamed begins with blanks, one at each beat: clients
  // and proxies hang up on silence. Absent: never.
  std::optional<std::chrono::nanoseconds> blanks_after = {};
  // Who does what the ends of answers take: puts them together, and starts those that waited for
  // them. Null: the engine's thread. Outlives the job.
  Errands* errands = nullptr;
  // Of what is told of a token, or of a likely other.
  std::size_t logprob_bytes = 0;
  // What the request keeps, let go with the job: `kept` beside the answer, and `answer` as long as
  // that will most often be, of an answer that is not streamed. It grows with one that is longer.
  RequestMemory::Share memory = nullptr;
  Bytes kept = {}, answer = {};
  // When the request came, which may have been parked since then.
  std::chrono::steady_clock::time_point came = std::chrono::steady_clock::now();
};

// How a job ended, for metrics and logs.
struct JobEnd {
  Status status;           // of the first answer that failed
  bool cancelled = false;  // the client left before the end
  std::vector<ChoiceAnswer> choices;
  double first_piece_seconds = 0;  // since the request came; 0: none came
  double seconds = 0;
};

struct JobListener {
  std::function<void(double seconds)> on_first = {};  // since the request came, of the first piece
  std::function<void(double seconds)> on_gap = {};    // between two pieces of an answer
  std::function<void(const JobEnd&)> on_end = {};
};

// Returns before the end; all that is needed lives on by itself, and the use of the model with it.
void RunTextJob(ModelUse use, JobRequests requests, const JobOptions& options,
                std::unique_ptr<AnswerFormat> format, HttpReplyPtr reply, JobListener listener);

}  // namespace troupe
