// `troupe eval --tasks`: how many questions a model answers right, exactly or not.
#pragma once

#include <string>
#include <vector>

#include "troupe/eval_flags.h"
#include "troupe/option_table.h"

namespace troupe {

class EvalTasks {
 public:
  void AddTo(Options& options);
  bool given() const { return !files_.empty(); }
  Status Run(const EvalFlags& flags) const;

 private:
  std::vector<std::string> files_;
  std::size_t items_ = 0;  // of each file; 0: all
  bool against_exact_ = false;
};

}  // namespace troupe
