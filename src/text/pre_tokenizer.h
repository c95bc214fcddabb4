// Cuts text into the words inside which byte-level BPE merges, by the regular expressions a model
// was trained with. Models name them in tokenizer.ggml.pre; pre_tokenizer_rules.h has the rules.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace troupe {

class PreTokenizer {
 public:
  // An unknown name is kUnimplemented, with the names that are known.
  static Result<PreTokenizer> Make(std::string_view name);
  ~PreTokenizer();
  PreTokenizer(PreTokenizer&&) noexcept;
  PreTokenizer& operator=(PreTokenizer&&) noexcept;

  // The words, in order; together they are the text, which must be valid UTF-8. Thread-safe.
  std::vector<std::string_view> Split(std::string_view text) const;

  // A whole word that is a token is taken as it is, even where merges would give another cut.
  bool ignores_merges() const { return ignores_merges_; }

 private:
  class Pattern;
  PreTokenizer(std::vector<Pattern> patterns, bool ignores_merges);

  std::vector<Pattern> patterns_;
  bool ignores_merges_;
};

}  // namespace troupe
