// The vocabularies under tests/data/tokenizers, read as the engine reads a model's.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/status.h"
#include "text/tokenizer.h"
#include "text/vocab.h"

namespace troupe {

Result<std::string> ReadTestFile(std::string_view path);  // below tests/data

Result<Vocab> LoadTestVocab(std::string_view name);  // "gpt-2"
Result<std::unique_ptr<Tokenizer>> LoadTestTokenizer(std::string_view name);
// Another pre-tokenizer on the same vocabulary.
Result<std::unique_ptr<Tokenizer>> LoadTestTokenizer(std::string_view name,
                                                     std::string_view pre_tokenizer);

}  // namespace troupe
