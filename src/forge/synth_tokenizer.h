// A vocabulary for a synthesized model: a small one made here, the same on every machine, or that
// of another GGUF file; either padded with unused tokens to the size that the shape has. Text goes
// in and comes out; it is no better than the weights are.
#pragma once

#include <cstdint>

#include "base/status.h"
#include "gguf/metadata.h"

namespace troupe {

// Adds the tokenizer.* keys to `out`. A SentencePiece vocabulary of the bytes, printable ASCII and
// common pairs and words of English.
Status AddGeneratedTokenizer(std::uint32_t vocabulary, Metadata& out);

// Those of `from`.
Status AddTokenizerOf(const Metadata& from, std::uint32_t vocabulary, Metadata& out);

}  // namespace troupe
