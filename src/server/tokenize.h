// POST /tokenize, with the options that llama-server has for it. Pure.
#pragma once

#include <string>
#include <string_view>

#include "base/status.h"
#include "text/tokenizer.h"

namespace troupe {

// The body of the answer: {"tokens": [id, …]}, or with "with_pieces" [{"id", "piece"}, …].
Result<std::string> Tokenized(std::string_view body, const Tokenizer& tokenizer);

}  // namespace troupe
