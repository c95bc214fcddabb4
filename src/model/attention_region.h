// Attention of all groups of a pass, cut into tasks for one parallel region. The result does not
// depend on the cut, as kernels/attention.h promises, so threads only decide how fast it comes.
#pragma once

#include <cstddef>
#include <vector>

#include "base/thread_pool.h"
#include "kernels/attention.h"
#include "model/workspace.h"

namespace troupe {

class AttentionRegion {
 public:
  void Add(const AttentionCall& call) { calls_.push_back(call); }

  // Computes everything added since the last Run, then forgets it. Works in the scratch memory of
  // the workspace; the calls with split keys divide its partials among them.
  void Run(ThreadPool& pool, const Workspace& workspace);

 private:
  struct Cut {
    Attention attention;
    std::size_t first_task, first_merge;
  };

  void CutCalls(std::size_t threads, std::span<float> partials);

  std::vector<AttentionCall> calls_;  // keep their memory from one region to the next
  std::vector<Cut> cuts_;
  std::size_t tasks_ = 0, merges_ = 0;
};

}  // namespace troupe
