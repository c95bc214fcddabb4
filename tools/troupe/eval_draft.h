// `troupe eval --resident-draft`: what drafts by the experts in memory alone would be worth.
#pragma once

#include "troupe/eval_flags.h"
#include "troupe/option_table.h"

namespace troupe {

class EvalDraft {
 public:
  void AddTo(Options& options);
  bool given() const { return length_ > 0; }
  Status Run(EvalFlags& flags) const;

 private:
  std::size_t length_ = 0;
};

}  // namespace troupe
