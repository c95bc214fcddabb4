// `troupe eval --head-draft`: how often the model's own head guesses right, and what that is worth.
#pragma once

#include <cstddef>

#include "troupe/eval_flags.h"
#include "troupe/option_table.h"

namespace troupe {

class EvalHead {
 public:
  void AddTo(Options& options);
  bool given() const { return length_ > 0; }
  Status Run(EvalFlags& flags) const;

 private:
  std::size_t length_ = 0;
  double temperature_ = 0;
};

}  // namespace troupe
