#include "split/wire/cloud_line.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "base/json.h"
#include "base/json_value.h"
#include "split/wire/token_ids.h"

namespace troupe {
namespace {

constexpr std::size_t kLongestLine = 1 << 16;
constexpr std::size_t kMostRead = 1 << 30;
constexpr double kMostLineSeconds = 1e9;
constexpr std::array<std::pair<FinishReason, std::string_view>, 5> kReasons = {
    {{FinishReason::kLength, "length"},
     {FinishReason::kEndToken, "end"},
     {FinishReason::kStopString, "stop"},
     {FinishReason::kContextFull, "context full"},
     {FinishReason::kCancelled, "cancelled"}}};

std::string_view WireName(FinishReason reason) {
  return std::ranges::find(kReasons, reason, &decltype(kReasons)::value_type::first)->second;
}

// The numbers are gRPC's; one that is not known is an error all the same.
Code CodeOf(std::uint64_t number) {
  for (const Code code :
       {Code::kCancelled, Code::kInvalidArgument, Code::kDeadlineExceeded, Code::kNotFound,
        Code::kAlreadyExists, Code::kPermissionDenied, Code::kResourceExhausted,
        Code::kFailedPrecondition, Code::kUnimplemented, Code::kUnavailable, Code::kDataLoss}) {
    if (static_cast<std::uint64_t>(code) == number) return code;
  }
  return Code::kInternal;
}

CloudEnd ReadEnd(const JsonValue& json) {
  const std::string name = json.At("end").String();
  const auto reason = std::ranges::find(kReasons, name, &decltype(kReasons)::value_type::second);
  if (reason == kReasons.end()) json.At("end").Fail("how answers end");
  return {.reason = reason->first,
          .read = json.At("read").Count(0, kMostRead),
          .queue_seconds = json.At("queue_s").Number(0, kMostLineSeconds),
          .read_seconds = json.At("read_s").Number(0, kMostLineSeconds),
          .decode_seconds = json.At("decode_s").Number(0, kMostLineSeconds),
          .load = ReadCloudLoad(json.At("load"))};
}

CloudFailure ReadFailure(const JsonValue& error) {
  CloudFailure failure{.status = Status(CodeOf(error.At("code").Count(0, 64)),
                                        InOneLine(error.At("message").String()))};
  if (error.Has("context_full") && error.At("context_full").Flag()) {
    failure.status = std::move(failure.status).WithContextFull();
  }
  return failure;
}

}  // namespace

std::string InOneLine(std::string text) {
  std::ranges::replace_if(
      text, [](char c) { return static_cast<unsigned char>(c) < ' '; }, ' ');
  return text;
}

std::string EncodeTokens(std::span<const TokenId> tokens) {
  return fmt::format("[{}]\n", fmt::join(tokens, ","));
}

std::string Encode(const CloudLine& line) {
  if (const auto* const tokens = std::get_if<CloudTokens>(&line)) {
    return EncodeTokens(tokens->tokens);
  }
  if (const auto* const end = std::get_if<CloudEnd>(&line)) {
    return Json{{"end", WireName(end->reason)},    {"read", end->read},
                {"queue_s", end->queue_seconds},   {"read_s", end->read_seconds},
                {"decode_s", end->decode_seconds}, {"load", Record(end->load)}}
               .Dump() +
           "\n";
  }
  if (const auto* const wait = std::get_if<CloudWait>(&line)) {
    return Json{{"wait_s", wait->seconds}}.Dump() + "\n";
  }
  if (std::holds_alternative<CloudReady>(line)) return Json{{"ready", true}}.Dump() + "\n";
  const Status& status = std::get<CloudFailure>(line).status;
  Json error = {{"code", static_cast<int>(status.code())}, {"message", status.message()}};
  if (status.context_full()) error["context_full"] = true;
  return Json{{"error", std::move(error)}}.Dump() + "\n";
}

Result<CloudLine> DecodeCloudLine(std::string_view text) {
  return ReadJson<CloudLine>("a line of the cloud", text, [](const JsonValue& json) -> CloudLine {
    if (json.IsArray()) return CloudTokens{.tokens = ReadTokenIds(json)};
    if (json.IsObject() && json.Has("error")) return ReadFailure(json.At("error"));
    if (json.IsObject() && json.Has("wait_s")) {
      return CloudWait{.seconds = json.At("wait_s").Number(0, kMostLineSeconds)};
    }
    if (json.IsObject() && json.Has("ready")) {
      if (!json.At("ready").Flag()) json.At("ready").Fail("true");
      return CloudReady();
    }
    return ReadEnd(json);
  });
}

Result<std::vector<std::string>> CloudLines::Take(std::string_view piece) {
  std::vector<std::string> lines;
  while (!piece.empty()) {
    const std::size_t length = piece.find('\n');
    if (rest_.size() + std::min(length, piece.size()) > kLongestLine) {
      return DataLoss("a line of the cloud has more than {} bytes", kLongestLine);
    }
    rest_ += piece.substr(0, length);
    if (length == piece.npos) break;
    lines.push_back(std::exchange(rest_, {}));
    piece.remove_prefix(length + 1);
  }
  return lines;
}

}  // namespace troupe
