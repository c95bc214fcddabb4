// A place that can choose the tokens of an answer, as who puts an answer together sees it: this
// machine's engine (own_source.h), the cloud (cloud_source.h), or a test's. All calls and events
// come on one thread, the loop's.
#pragma once

#include <troupe/request.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>

#include "base/clock.h"
#include "base/status.h"
#include "split/wire/cloud_request.h"
#include "split/wire/cut_ask.h"

namespace troupe {

// What a run tells; none comes before Start has returned, nor after it was stopped, has ended or
// has failed.
struct RunEvents {
  std::function<void()> on_heard = {};  // it lives
  // Of a prompt that is cut by layers: its rows may come. May be null.
  std::function<void()> on_ready = {};
  std::function<void(std::size_t read, std::size_t all)> on_read = {};
  // Of the same: this machine or the cloud has got on with it, or it waits for this machine. May be
  // null.
  std::function<void()> on_work = {};
  std::function<void(std::span<const TokenId> tokens)> on_tokens = {};
  // With what it took here.
  std::function<void(FinishReason reason, const Usage& usage)> on_end = {};
  // Of a cloud that is well, but full or not for this answer: kResourceExhausted or
  // kFailedPrecondition.
  std::function<void(const Status& why)> on_failure = {};
};

// What is before a run's first token, as far as the place where it is chosen knows.
struct RunLeft {
  bool begun = false;   // a part of its prompt was read there
  Nanos begins_at = 0;  // in the cloud, as is expected
  // At the end: runs before it, tokens that those have to read, and those that it has to read
  // itself. `since`: when one of these has changed last.
  std::size_t runs = 0, tokens = 0, own_tokens = 0;
  Nanos since = 0;
};

struct RunAsk {
  Request request;
  // A name that is this run's alone, for drafts of its answer (CloudSource::Offer); absent: there
  // will be none.
  std::optional<std::uint64_t> drafts = {};
  // The rows of its prompt, or of how it begins, come from elsewhere (CloudSource::SendStates);
  // absent: they do not.
  std::optional<CutAsk> cut = {};
  // Written by the place while the run lives; null: nobody asks.
  std::shared_ptr<RunLeft> left = nullptr;
  // Tokens of its prompt that the place is believed to have read before.
  std::size_t kept = 0;
};

inline std::size_t TokensToRead(const RunAsk& ask) {
  const std::size_t all = PromptTokensOf(ask.request);
  return all - std::min(all, ask.kept);
}

class TokenSource {
 public:
  virtual ~TokenSource() = default;

  using Stop = std::function<void()>;
  // Chooses the tokens behind those that the answer has begun with.
  virtual Stop Start(const RunAsk& ask, RunEvents events) = 0;
};

// Has the loop call something soon. Any thread.
using PostToLoop = std::function<void(std::function<void()>)>;

}  // namespace troupe
