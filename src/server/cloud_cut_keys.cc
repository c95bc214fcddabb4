// What a CloudCut does of keys and values, and how its answer goes on behind them.
#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <utility>

#include "api/model_access.h"
#include "server/api_error.h"
#include "server/cloud_cut.h"
#include "server/seconds_since.h"
#include "server/served_model.h"

namespace troupe {
namespace {

// What an end has computed serves that end alone, and who asks it as the same client: nobody else
// has to trust it. Ends may share a key, so the process counts, whose number no other end knows.
std::string SaltOf(std::uint64_t end, std::uint64_t process, const std::string& salt) {
  return fmt::format("cut by end {:016x} {:016x}: {}", end, process, salt);
}

// Of one prompt: messages that wait to be stored, and bytes of one. Ends send less of both.
constexpr std::size_t kMostPending = 8;
constexpr std::size_t kMostKeysMessage = 1 << 20;

// Times that the model may give up what it was to keep, before the rest is left to be read anew.
constexpr int kMostShrunk = 4;

}  // namespace

void CloudCut::TakeKeys(std::string_view message, HttpReplyPtr reply) {
  const auto keys = std::make_shared<Keys>();
  keys->reply = std::move(reply);
  const Result<bool> is_new = [&]() -> Result<bool> {
    const MutexLock lock(mu_);
    return KeepKeys(std::as_bytes(std::span(message)), *keys);
  }();
  if (!is_new.ok()) return keys->reply->Send(ErrorResponse(is_new.status()));
  if (!*is_new) return keys->reply->Send({.body = Encode(StatesReceipt())});
  host().decoding().Add([self = shared_from_this(), keys] { self->StoreKeys(keys); });
}

Result<bool> CloudCut::KeepKeys(std::span<const std::byte> message, Keys& keys) {
  if (finished_) return Error(Code::kNotFound, "keys for a prompt that is over");
  if (message.size() > kMostKeysMessage) {
    return InvalidArgument("{} bytes of keys at once, at most {} expected", message.size(),
                           kMostKeysMessage);
  }
  if (keys_pending_ >= kMostPending) {
    return Error(Code::kUnavailable, "too many keys of this prompt wait to be stored");
  }
  const Result<KeysFrame> frame = ReadKeysFrame(message);
  if (!frame.ok()) return InvalidArgument("{}", frame.status().message());
  TROUPE_ASSIGN_OR_RETURN(const CutKeys::News news, keys_.Look(*frame));
  if (news == CutKeys::News::kNone) return false;
  const std::span<const std::byte> bytes = KeysOf(message);
  keys.frame = *frame;
  keys.part.range = {.layers = {frame->first_layer, frame->first_layer + frame->layers},
                     .first = frame->first,
                     .positions = frame->positions};
  if (const std::size_t wanted = KeysBytes(host().lane().pool(), keys.part.range);
      bytes.size() != wanted) {
    return InvalidArgument("{} bytes of keys, {} expected", bytes.size(), wanted);
  }
  TROUPE_ASSIGN_OR_RETURN(keys.memory, host().waiting_memory().Take(Bytes(bytes.size())));
  keys.part.bytes.assign(bytes.begin(), bytes.end());
  keys_.Take(keys.frame);
  ++keys_pending_;
  return true;
}

void CloudCut::StoreKeys(const std::shared_ptr<Keys>& keys) {
  const PartLane& lane = host().lane();
  Status status = CheckKeys(lane.pool(), keys->part.range, keys->part.bytes);
  std::shared_ptr<PartLane::Prompt> prompt;
  {
    const MutexLock lock(mu_);
    if (!status.ok()) {
      keys_.GiveBack(keys->frame);
      --keys_pending_;
    } else if (finished_) {
      status = Error(Code::kNotFound, "keys for a prompt that is over");
    }
    prompt = prompt_;
  }
  if (!status.ok()) return keys->reply->Send(ErrorResponse(status));
  host().lane().Store(std::move(prompt), std::move(keys->part),
                      [self = shared_from_this(), keys](const PartLane::Outcome& outcome) {
                        self->OnStored(*keys, outcome.status);
                      });
}

void CloudCut::OnStored(Keys& keys, const Status& status) {
  if (!status.ok()) {
    keys.reply->Send(ErrorResponse(status));
    return Finish(status);
  }
  {
    const MutexLock lock(mu_);
    keys_.Stored(keys.frame);
    --keys_pending_;
    heard_ = SecondsSince(came_);
  }
  keys.memory.reset();
  keys.reply->Send({.body = Encode(StatesReceipt{.waited_seconds = keys.waited.Seconds()})});
  GoOnIfAll();
}

void CloudCut::GoOnIfAll() {
  std::shared_ptr<PartLane::Prompt> prompt;
  {
    const MutexLock lock(mu_);
    if (finished_ || prefix_ == 0 || next_ < tokens_ || !keys_.are_all_stored()) return;
    for (const auto& [first, message] : messages_) {
      if (!message.done) return;
    }
    if (std::exchange(goes_on_, true)) return;
    prompt = prompt_;
  }
  Request& request = call_.asked.request;
  request.cache_salt = SaltOf(end_, call_.asked.cut->process, request.cache_salt);
  const auto self = shared_from_this();
  const auto take = [self, from = prompt.get()](std::size_t positions) {
    return self->KeepMore(*from, positions);
  };
  host().lane().TakeOut(std::move(prompt), take, [self](const PartLane::Outcome& outcome) {
    if (!outcome.status.ok()) return self->Finish(outcome.status);
    self->GoOn();
  });
}

// The model finds in its prefix cache what was read of the prompt. Where that has no room, or gives
// up what it has, the model reads it anew: later, and to the same bytes.
PartLane::Taken CloudCut::KeepMore(const PartLane::Prompt& prompt, std::size_t positions) {
  {
    const MutexLock lock(mu_);
    if (finished_) return {};
  }
  std::size_t copied = 0;
  const std::size_t kept = ModelAccess::KeepPrefix(
      *use_->served().model, text_->prompt().first(prefix_), call_.asked.request.cache_salt,
      positions, [&](KvSequence& to, std::size_t length) {
        copied = length - to.length();
        host().lane().CopyTo(prompt, length, to);
      });
  has_no_room_ = kept < prefix_ && copied == 0;
  // Answers may take room away that it had.
  const bool may_go_on = kept > kept_ || ++shrunk_ <= kMostShrunk;
  kept_ = kept;
  return {.positions = copied, .more = kept < prefix_ && copied > 0 && may_go_on};
}

void CloudCut::GoOn() {
  std::optional<EndTurns::Turn> turn;
  {
    const MutexLock lock(mu_);
    if (std::exchange(finished_, true)) return;
    if (turn_) turn.emplace(std::move(*turn_));
    turn_.reset();
    prompt_.reset();
  }
  const auto self = shared_from_this();  // the host may be the last one who has it
  host().Close(end_, name_, this);
  call_.asked.cut.reset();
  {
    const MutexLock lock(writing_);
    closed_ = true;
    call_.has_begun = wrote_;
  }
  JobListener listener = listener_;
  // Tokens that the answer has begun with are read anew, whoever has read them.
  const std::size_t most_found = text_->prompt().size() - call_.asked.request.begun.size();
  listener.on_end = [use = use_, tell = listener_.on_end, prefix = std::min(prefix_, most_found),
                     has_no_room = has_no_room_](const JobEnd& end) {
    if (end.status.ok() && !end.cancelled) {
      const std::size_t found = end.choices.front().answer.usage.cached_tokens;
      use->served().cuts->CountWentOn(found >= prefix, has_no_room);
    }
    if (tell) tell(end);
  };
  RunCloudAnswer(use_, std::move(call_), reply_, shared_, std::move(listener));
}

}  // namespace troupe
