// Any bytes as the body of a request, which the first byte sends to one of the APIs: read, or
// refused as the client's fault by one line.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "server/anthropic_messages.h"
#include "server/embeddings.h"
#include "server/llama_completion.h"
#include "server/openai_chat.h"
#include "server/openai_completions.h"
#include "server/openai_responses.h"

namespace troupe {
namespace {

Status Read(char api, std::string_view body) {
  switch (api) {
    case 'c':
      return ReadCompletionCall(body, {}).status();
    case 'h':
      return ReadChatCall(body, {}).status();
    case 'r':
      return ReadResponsesCall(body, {}).status();
    case 'm':
      return ReadMessagesCall(body, MessagesKind::kAnswer, {}).status();
    case 't':
      return ReadMessagesCall(body, MessagesKind::kCount, {}).status();
    case 'l':
      return ReadLlamaCall(body, LlamaKind::kText, {}).status();
    case 'i':
      return ReadLlamaCall(body, LlamaKind::kGap, {}).status();
    default:
      return ReadEmbeddingsCall(body, 64).status();
  }
}

}  // namespace
}  // namespace troupe

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const troupe::Status status = troupe::Read(input[0], input.substr(1));
  if (status.ok()) return 0;
  TROUPE_CHECK(status.code() == troupe::Code::kInvalidArgument);
  TROUPE_CHECK(status.message().starts_with("request"));
  TROUPE_CHECK(std::ranges::count(status.message(), '\n') == 0);
  return 0;
}
