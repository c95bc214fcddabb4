// POST /tokenize, with the options that llama-server has for it, or vLLM. Pure.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "base/status.h"
#include "text/tokenizer.h"

namespace troupe {

// The body of the answer: {"tokens": [id, …]}, or with "with_pieces" [{"id", "piece"}, …]. A text
// that is called "prompt" is vLLM's, and its tokens are counted beside the model's `context`.
Result<std::string> Tokenized(std::string_view body, const Tokenizer& tokenizer,
                              std::size_t context);

}  // namespace troupe
