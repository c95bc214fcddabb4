// `troupe eval --closed-loop`: what becomes of generated text where answers are not exact.
#pragma once

#include "troupe/eval_flags.h"
#include "troupe/option_table.h"

namespace troupe {

class EvalLoop {
 public:
  void AddTo(Options& options);
  bool given() const { return tokens_ > 0; }
  Status Run(EvalFlags& flags) const;

 private:
  std::size_t tokens_ = 0, prompts_ = 8, prompt_tokens_ = 64;
};

}  // namespace troupe
