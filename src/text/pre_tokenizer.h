// Cuts text into the words inside which byte-level BPE merges, by the regular expressions a model
// was trained with (pre_tokenizer_rules.h).
#pragma once

#include <functional>
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

  // Called with the words, in order; together they are the text, which must be valid UTF-8.
  using UseWord = std::function<Status(std::string_view)>;
  // Thread-safe. Fails if a pattern takes more steps than the library allows, and as `use` does.
  Status ForEachWord(std::string_view text, const UseWord& use) const;

  bool ignores_merges() const { return ignores_merges_; }

 private:
  class Pattern;
  class Cutting;
  PreTokenizer(std::vector<Pattern> patterns, bool ignores_merges);

  std::vector<Pattern> patterns_;
  bool ignores_merges_;
};

}  // namespace troupe
