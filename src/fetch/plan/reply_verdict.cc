#include "fetch/plan/reply_verdict.h"

#include <algorithm>
#include <charconv>
#include <cmath>

namespace troupe {
namespace {

constexpr double kFirstWait = 0.5;     // seconds
constexpr double kLongestWait = 60.0;  // of what a server asks for
using Next = ReplyVerdict::Next;

bool TakeText(std::string_view& text, std::string_view expected) {
  if (!text.starts_with(expected)) return false;
  text.remove_prefix(expected.size());
  return true;
}

std::optional<std::uint64_t> TakeCount(std::string_view& text) {
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.begin(), text.end(), number);
  if (error != std::errc()) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(end - text.begin()));
  return number;
}

ReplyVerdict GiveUp(Status why) { return {Next::kGiveUp, std::move(why)}; }

// Of a status that brings no bytes.
ReplyVerdict JudgeRefusal(const ReplyHead& head, std::string_view what, bool with_token) {
  switch (head.status) {
    case 301:
    case 302:
    case 303:
    case 307:
    case 308:
      if (!head.location.empty()) return {Next::kFollow, OkStatus()};
      return GiveUp(DataLoss("{}: a redirect to nowhere ({})", what, head.status));
    case 401:
      return GiveUp(Error(Code::kPermissionDenied, "{}: {} (401)", what,
                          with_token
                              ? "the token in HF_TOKEN is not accepted, or there is no such model"
                              : "it needs a token (HF_TOKEN), or there is no such model"));
    case 403:
      return GiveUp(Error(Code::kPermissionDenied,
                          "{}: not allowed (403); its page may ask you to accept its terms first{}",
                          what, with_token ? "" : ", and HF_TOKEN is not set"));
    case 404:
    case 410:
      return GiveUp(
          Error(Code::kNotFound, "{}: there is no such model or file ({})", what, head.status));
    case 408:
    case 429:
    case 500:
    case 502:
    case 503:
    case 504: {
      const std::string_view reason = head.status == 429 ? "the server has had too many requests"
                                                         : "the server cannot answer now";
      Status why = Error(Code::kUnavailable, "{}: {} ({})", what, reason, head.status);
      return {Next::kComeAgain, std::move(why).WithRetryAfter(head.retry_after.value_or(0))};
    }
    default:
      return GiveUp(
          Error(Code::kUnavailable, "{}: the server answers with status {}", what, head.status));
  }
}

ReplyVerdict JudgePart(const ReplyHead& head, const AskedFor& asked) {
  const std::optional<RangeReply> range = ParseContentRange(head.range);
  if (!range || range->first != asked.from) {
    return GiveUp(DataLoss("{}: bytes from {} on were asked for, and '{}' came", asked.what,
                           asked.from, head.range));
  }
  if (range->total && *range->total != asked.bytes) {
    return GiveUp(DataLoss("{}: listed with {} bytes, and the server has a file of {}", asked.what,
                           asked.bytes, *range->total));
  }
  if (range->last >= asked.bytes) {
    return GiveUp(DataLoss("{}: listed with {} bytes, and the server sends byte {}", asked.what,
                           asked.bytes, range->last));
  }
  return {Next::kAppend, OkStatus()};
}

}  // namespace

std::optional<RangeReply> ParseContentRange(std::string_view text) {
  if (!TakeText(text, "bytes ")) return std::nullopt;
  const std::optional<std::uint64_t> first = TakeCount(text);
  if (!first || !TakeText(text, "-")) return std::nullopt;
  const std::optional<std::uint64_t> last = TakeCount(text);
  if (!last || *last < *first || !TakeText(text, "/")) return std::nullopt;
  if (text == "*") return RangeReply{*first, *last, std::nullopt};
  const std::optional<std::uint64_t> total = TakeCount(text);
  if (!total || !text.empty() || *last >= *total) return std::nullopt;
  return RangeReply{*first, *last, *total};
}

ReplyVerdict JudgeReply(const ReplyHead& head, const AskedFor& asked) {
  if (head.status == 206) return JudgePart(head, asked);
  if (head.status == 416 && asked.from > 0) return {Next::kAskWhole, OkStatus()};
  if (head.status != 200) return JudgeRefusal(head, asked.what, asked.with_token);
  if (head.length && *head.length != asked.bytes) {
    return GiveUp(DataLoss("{}: listed with {} bytes, and the server sends {}", asked.what,
                           asked.bytes, *head.length));
  }
  return {Next::kFromStart, OkStatus()};
}

ReplyVerdict JudgeListing(const ReplyHead& head, std::string_view what, bool with_token) {
  if (head.status == 200) return {Next::kFromStart, OkStatus()};
  return JudgeRefusal(head, what, with_token);
}

bool IsStrongEtag(std::string_view etag) {
  return etag.size() > 2 && etag.starts_with('"') && etag.ends_with('"');
}

std::optional<double> Patience::AfterFailure(double retry_after) {
  if (++failures_ >= most_ || retry_after > kLongestWait) return std::nullopt;
  return std::max(std::ldexp(kFirstWait, failures_ - 1), retry_after);
}

}  // namespace troupe
