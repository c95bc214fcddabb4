// A request of one or more answers, from its start to the last byte of its response: starts the
// generations, tells the format what comes, and the client what the format says of it. A client
// that leaves, or reads too slowly, cancels them. Its callbacks come from the engine's thread.
#pragma once

#include <troupe/model.h>

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "server/answer_format.h"
#include "server/http/http_reply.h"

namespace troupe {

struct JobOptions {
  bool stream = false;
  std::optional<std::size_t> logprobs;  // other likely tokens told beside each
};

// How a job ended, for metrics and logs.
struct JobEnd {
  Status status;           // of the first answer that failed
  bool cancelled = false;  // the client left before the end
  std::vector<ChoiceAnswer> choices;
  double first_piece_seconds = 0;  // from the start; 0: none came
  double seconds = 0;
};

struct JobListener {
  std::function<void(double seconds)> on_first = {};  // from the start to the first piece
  std::function<void(double seconds)> on_gap = {};    // between two pieces of an answer
  std::function<void(const JobEnd&)> on_end = {};
};

// Returns before the end; all that is needed lives on by itself, but the model, which must be
// closed before it goes. `requests`: one an answer.
void RunTextJob(Model& model, std::vector<Request> requests, const JobOptions& options,
                std::unique_ptr<AnswerFormat> format, HttpReplyPtr reply, JobListener listener);

}  // namespace troupe
