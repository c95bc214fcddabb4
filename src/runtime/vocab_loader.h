// Reads the vocabulary out of a GGUF's metadata. text/ knows what the fields mean for text.
#pragma once

#include <string>

#include "base/status.h"
#include "gguf/metadata.h"
#include "text/vocab.h"

namespace troupe {

// `origin` is what errors about the vocabulary name: the path of the file. Keys that a file leaves
// out get the values that llama.cpp gives them. The result is not validated: MakeTokenizer does so.
Result<Vocab> LoadVocab(const Metadata& metadata, std::string origin = "vocabulary");

}  // namespace troupe
