// The rules by which models cut text into words before byte-level BPE, under the names that
// tokenizer.ggml.pre has for them: data for pre_tokenizer.h, and for those who read vocabularies.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace troupe {

struct PreTokenizerRule {
  std::span<const std::string_view> names;
  // Regular expressions, applied one after another, each to the pieces the one before left: its
  // matches become pieces of their own, and so does what lies between them.
  std::span<const std::string_view> patterns;
  bool ignores_merges = false;  // a whole word that is a token is taken as it is
  bool adds_bos = false;        // unless the model file says otherwise
};

// Null for a name that is not known.
const PreTokenizerRule* FindPreTokenizerRule(std::string_view name);

std::string KnownPreTokenizers();  // "default, gpt-2, …", for messages

}  // namespace troupe
