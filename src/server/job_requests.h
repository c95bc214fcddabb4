// The requests of one job, which differ in their prompts and seeds alone: kept once, and made one
// by one as they start, as a job of hundreds of answers must not have hundreds of copies. Pure.
#pragma once

#include <troupe/request.h>

#include <cstddef>
#include <vector>

#include "base/bytes.h"

namespace troupe {

struct JobRequests {
  Request common;                             // without a prompt
  std::vector<std::vector<TokenId>> prompts;  // at least one
  std::size_t n = 1;                          // answers of each, whose seeds follow one another

  // Of one prompt, which are the request's own.
  static JobRequests Of(Request request, std::size_t n = 1);

  std::size_t count() const { return prompts.size() * n; }
  // Where only one is made at all, it takes what this has.
  Request Make(std::size_t i);
  std::size_t LongestPrompt() const;  // tokens

  // What they take while no more than `together` of them are with the model at a time.
  Bytes SizeInMemory(std::size_t together) const;
};

}  // namespace troupe
