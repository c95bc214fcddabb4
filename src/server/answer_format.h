// How one API shows an answer, whole or as a stream: text, tokens and costs in, bytes out. Whoever
// runs the request (text_job.h) knows nothing of it, and the formats nothing of engines or sockets.
#pragma once

#include <troupe/request.h>

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "server/http/http_message.h"
#include "server/sse.h"

namespace troupe {

// A token as it was chosen, where a request asks for that.
struct TokenLogprob {
  struct Other {
    std::string text;
    double logprob = 0;
  };
  std::string text;
  double logprob = 0;
  std::vector<Other> top;  // the most likely ones, best first
};

// What an answer grew by.
struct TextDelta {
  std::string_view text;
  std::span<const TokenLogprob> tokens;  // whose text it is, and maybe of the next delta
};

// One of the answers of a request, at its end.
struct ChoiceAnswer {
  Answer answer;
  std::vector<TokenLogprob> tokens;  // all of them, if asked for
  std::vector<TokenLogprob> prompt;  // of its prompt, but the first, if asked for
};

class AnswerFormat {
 public:
  virtual ~AnswerFormat() = default;

  // Of a stream. Each gives the events to be sent, maybe none.
  virtual std::string Open() = 0;
  virtual std::string Delta(std::size_t choice, const TextDelta& delta) = 0;
  virtual std::string Close(std::size_t choice, const Answer& answer) = 0;
  virtual std::string Last(std::span<const ChoiceAnswer> choices) = 0;
  virtual std::string Failure(const Status& status) = 0;
  // Tokens of the prompt that were read so far, for clients that asked to be told.
  virtual std::string Progress(std::size_t read, std::size_t all) = 0;
  // Nothing has been written for a while. Passed over by clients, and yet heard by those that hang
  // up on silence: a comment, where nobody is known whose clock only events set back.
  virtual std::string Waiting() { return CommentEvent("waiting"); }

  virtual HttpResponse Whole(std::span<const ChoiceAnswer> choices) = 0;
  virtual HttpResponse Refusal(const Status& status) = 0;
};

}  // namespace troupe
