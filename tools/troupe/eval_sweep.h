// `troupe eval --sweep`: the price of several policies at several sizes of the cache, in one
// command that goes on where it was cut.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "troupe/eval_flags.h"
#include "troupe/option_table.h"

namespace troupe {

class EvalSweep {
 public:
  void AddTo(Options& options);
  bool given() const { return !chains_.empty(); }
  Status CheckUsage(const EvalFlags& flags) const;
  Status Run(EvalFlags& flags) const;

 private:
  std::string chains_, folder_;
  std::vector<double> resident_ = {75, 50, 37.5, 25};  // percent
  std::optional<std::size_t> settle_;
};

}  // namespace troupe
