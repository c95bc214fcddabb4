// Reads a text byte by byte against a grammar and says whether it may go on so. A value: a copy
// goes on by itself from the same place, and costs as much as the nesting is deep.
#pragma once

#include <bitset>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "text/grammar/automaton.h"
#include "text/grammar/stack_pool.h"

namespace troupe {

class Matcher {
 public:
  explicit Matcher(std::shared_ptr<const Automaton> automaton, StackLimits limits = {});

  // Whether some text of the grammar begins with what was accepted and `bytes`. If none does, the
  // matcher stays where it is. kResourceExhausted: the grammar is too ambiguous to follow.
  Result<bool> Accept(std::string_view bytes);

  Result<bool> CanEnd();  // what was accepted is a whole text
  Result<bool> IsDone();  // and no longer text begins with it

  // The bytes of which Accept takes one.
  Result<std::bitset<256>> AllowedBytes();

  const Automaton& automaton() const { return *automaton_; }
  const StackPool& pool() const { return pool_; }
  std::span<const CellId> tops() const { return tops_; }

 private:
  std::shared_ptr<const Automaton> automaton_;
  std::size_t cells_meanwhile_;
  StackPool pool_;
  std::vector<CellId> tops_;
};

}  // namespace troupe
