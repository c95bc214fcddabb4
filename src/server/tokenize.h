// POST /tokenize, with the options that llama-server has for it, or vLLM; and how long answers of
// /detokenize may be. Pure.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "base/status.h"
#include "text/tokenizer.h"

namespace troupe {

// The body of the answer: {"tokens": [id, …]}, or with "with_pieces" [{"id", "piece"}, …]. A text
// that is called "prompt" is vLLM's, and its tokens are counted beside the model's `context`.
// kInvalidArgument: it is none, or its answer would be longer than one may be (answer_size.h).
Result<std::string> Tokenized(std::string_view body, const Tokenizer& tokenizer,
                              std::size_t context);

// Whether the text of these tokens, as far as there are such tokens, can be an answer.
Status CheckTextLength(std::span<const TokenId> tokens, const Tokenizer& tokenizer);

}  // namespace troupe
