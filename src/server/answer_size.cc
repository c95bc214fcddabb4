#include "server/answer_size.h"

#include <algorithm>

namespace troupe {
namespace {

constexpr std::size_t kOfText = 8;  // of a token

}  // namespace

std::size_t AnswerShape::BytesOfToken() const {
  return kOfText + (logprobs ? (*logprobs + 2) * logprob_bytes : 0);
}

std::size_t AnswerShape::Bytes() const {
  return (prompts * n * tokens + prompt_tokens) * BytesOfToken();
}

Result<std::size_t> TokensThatFit(const AnswerShape& shape) {
  if (shape.Bytes() <= kMostAnswerBytes) return shape.tokens;
  const std::size_t all = kMostAnswerBytes / shape.BytesOfToken();
  const std::size_t left = all - std::min(all, shape.prompt_tokens);
  const std::size_t each = left / (shape.prompts * shape.n);
  if (!shape.tokens_are_asked_for && each > 0) return each;
  const char* const field = shape.n > 1                                      ? "n"
                            : shape.prompts > 1 || shape.prompt_tokens > all ? "prompt"
                                                                             : "max_tokens";
  const char* const instead =
      shape.prompt_tokens > 0 ? "" : ", or \"stream\": true, where it may be of any length";
  return InvalidArgument(
      "request: {}: an answer of up to {} tokens{}, expected at most {} so that all of it can be "
      "held and sent{}",
      field, shape.prompts * shape.n * shape.tokens + shape.prompt_tokens,
      shape.logprobs ? " with their logprobs" : "", all, instead);
}

}  // namespace troupe
