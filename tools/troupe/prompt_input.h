// Where the prompt of `troupe run` comes from: --prompt or the argument behind the model, --file,
// --prompt-ids, or what is piped in.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "text/tokenizer.h"
#include "troupe/option_table.h"

namespace troupe {

class PromptInput {
 public:
  void AddTo(Options& options);
  // Behind the model, as arguments are told apart by their order.
  void AddArgumentTo(Options& options);
  Status CheckUsage() const;

  bool given() const { return Count() > 0; }
  bool has_ids() const { return !ids_.empty(); }
  // Standard input is a file or a pipe: where nothing is given, that is the prompt.
  static bool IsPiped();
  static bool IsTerminal();  // standard input: somebody types
  // Where a prompt is given and another is piped in: that it is not read.
  void NoteWhatIsNotRead() const;

  // What is shown before the answer: the prompt of the command line alone.
  std::string_view shown() const { return prompt() ? std::string_view(*prompt()) : ""; }
  const std::string& name() const { return file_.empty() ? name_ : file_; }

  // `context`: the tokens that a sequence may have. A text that cannot fit is refused before it
  // takes memory that no plan knows of.
  Result<std::string> Text(const Tokenizer& tokenizer, std::uint32_t context) const;
  Result<std::vector<TokenId>> Tokens(const Tokenizer& tokenizer, std::uint32_t context) const;

 private:
  int Count() const;
  const std::optional<std::string>& prompt() const { return prompt_ ? prompt_ : argument_; }

  std::optional<std::string> prompt_, argument_;
  std::string file_, ids_;
  const std::string name_ = "prompt";
};

}  // namespace troupe
