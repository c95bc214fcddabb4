// What a stream says while its request waits and nothing of an answer is there yet, in the words of
// its API: events where that has some for it, comments elsewhere. Without sockets and clocks.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "server/http/http_message.h"
#include "server/openai_values.h"

namespace troupe {

// What the answer has to go on with: numbered events that were told, and of which response.
struct ToldWaiting {
  std::uint64_t events = 0;  // 0: the answer begins as if nothing had been said
  OpenAiHead head;
};

class WaitingStream {
 public:
  virtual ~WaitingStream() = default;

  // That the server lives.
  virtual std::string Beat() = 0;
  // The end of a stream that gets no answer: `refusal` is what would have been the whole response.
  virtual std::string Refused(const HttpResponse& refusal) = 0;
  virtual ToldWaiting told() const { return {}; }
};

// `endpoint` is one of service_paths.h. `head` is asked once, if at all, and never without a beat.
std::unique_ptr<WaitingStream> MakeWaitingStream(std::string_view endpoint,
                                                 std::function<OpenAiHead()> head);

}  // namespace troupe
