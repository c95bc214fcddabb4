#include "server/tokenize.h"

#include <fmt/core.h>

#include <algorithm>
#include <iterator>

#include "base/bytes.h"
#include "base/json.h"
#include "server/answer_size.h"
#include "server/prompt_fields.h"
#include "server/request_body.h"
#include "server/sampling_fields.h"
#include "text/utf8.h"

namespace troupe {
namespace {

struct TokenizeCall {
  std::string content;
  bool counts = false;  // as vLLM tells it
  EncodeOptions options = {.add_special = false, .parse_special = true};
  bool with_pieces = false;
};

TokenizeCall TokenizeCallOf(const JsonValue& body) {
  if (!body.IsObject()) body.Fail("an object");
  TokenizeCall call;
  call.counts = Says(body, "prompt") && !Says(body, "content");
  const JsonValue content = body.At(call.counts ? "prompt" : "content");
  call.content = content.String();
  CheckPromptBytes(content, call.content.size());
  call.options.add_special = call.counts;
  const auto flag = [&body](const char* key, bool& to) {
    if (Says(body, key)) to = body.At(key).Flag();
  };
  flag(call.counts ? "add_special_tokens" : "add_special", call.options.add_special);
  flag("parse_special", call.options.parse_special);
  flag("with_pieces", call.with_pieces);
  return call;
}

// A text, or its bytes where they are none by themselves.
std::string PieceOf(std::string_view bytes) {
  if (!FindInvalidUtf8(bytes)) return Json(bytes).Dump();
  Json list = Json::Array();
  for (const char c : bytes) list.push_back(static_cast<int>(static_cast<unsigned char>(c)));
  return list.Dump();
}

// The list of tokens as text, as values would take many times as much.
Result<std::string> ListOf(std::span<const TokenId> tokens, const Tokenizer& tokenizer,
                           bool with_pieces) {
  constexpr std::size_t kOfId = 8, kOfPiece = 32;  // bytes, mostly
  std::string list = "[";
  list.reserve(std::min(kMostAnswerBytes, tokens.size() * (with_pieces ? kOfPiece : kOfId)));
  for (const TokenId token : tokens) {
    if (list.size() > 1) list += ',';
    if (with_pieces) {
      const std::string piece = PieceOf(tokenizer.TokenBytes(token));
      fmt::format_to(std::back_inserter(list), R"({{"id":{},"piece":{}}})", token, piece);
    } else {
      fmt::format_to(std::back_inserter(list), "{}", token);
    }
    if (list.size() > kMostAnswerBytes) {
      return InvalidArgument(
          "request: {}: {} tokens, whose list is longer than {}: send the text in parts",
          with_pieces ? "with_pieces" : "content", tokens.size(),
          ToString(Bytes(kMostAnswerBytes)));
    }
  }
  list += ']';
  return list;
}

}  // namespace

Result<std::string> Tokenized(std::string_view body, const Tokenizer& tokenizer,
                              std::size_t context) {
  TROUPE_ASSIGN_OR_RETURN(const TokenizeCall call, ReadBody<TokenizeCall>(body, TokenizeCallOf));
  TROUPE_ASSIGN_OR_RETURN(const std::vector<TokenId> tokens,
                          tokenizer.Encode(call.content, call.options));
  TROUPE_ASSIGN_OR_RETURN(std::string answer,
                          ListOf(tokens, tokenizer, call.with_pieces && !call.counts));
  std::string head = "{";
  if (call.counts) {
    head = fmt::format(R"({{"count":{},"max_model_len":{},)", tokens.size(), context);
  }
  answer.insert(0, head + R"("tokens":)");
  answer += '}';
  return answer;
}

Status CheckTextLength(std::span<const TokenId> tokens, const Tokenizer& tokenizer) {
  constexpr std::size_t kMost = kMostAnswerBytes / 4;  // it may be longer in JSON
  std::size_t bytes = 0;
  for (const TokenId token : tokens) {
    if (tokenizer.Contains(token)) bytes += tokenizer.TokenBytes(token).size();
  }
  if (bytes <= kMost) return OkStatus();
  return InvalidArgument("request: tokens: a text of {}, expected at most {}",
                         ToString(Bytes(bytes)), ToString(Bytes(kMost)));
}

}  // namespace troupe
