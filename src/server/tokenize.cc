#include "server/tokenize.h"

#include "base/json.h"
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
  call.content = body.At(call.counts ? "prompt" : "content").String();
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
Json PieceOf(std::string_view bytes) {
  if (!FindInvalidUtf8(bytes)) return bytes;
  Json list = Json::Array();
  for (const char c : bytes) list.push_back(static_cast<int>(static_cast<unsigned char>(c)));
  return list;
}

}  // namespace

Result<std::string> Tokenized(std::string_view body, const Tokenizer& tokenizer,
                              std::size_t context) {
  TROUPE_ASSIGN_OR_RETURN(const TokenizeCall call, ReadBody<TokenizeCall>(body, TokenizeCallOf));
  TROUPE_ASSIGN_OR_RETURN(const std::vector<TokenId> tokens,
                          tokenizer.Encode(call.content, call.options));
  if (call.counts) {
    return Json{{"count", tokens.size()}, {"max_model_len", context}, {"tokens", tokens}}.Dump();
  }
  if (!call.with_pieces) return Json{{"tokens", tokens}}.Dump();
  Json list = Json::Array();
  for (const TokenId token : tokens) {
    list.push_back({{"id", token}, {"piece", PieceOf(tokenizer.TokenBytes(token))}});
  }
  return Json{{"tokens", std::move(list)}}.Dump();
}

}  // namespace troupe
