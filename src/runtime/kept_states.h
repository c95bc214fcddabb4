// States that sequences have left at some points of their texts, found again by those that begin
// with the same tokens: what the prefix cache's pages are for keys and values, of models whose
// sequences have a state besides, with the same salts. It takes places of the StatePool that no
// sequence needs, and gives up those that were not used for longest. Threads: one at a time, the
// pool's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "model/batch.h"
#include "model/sequence_state.h"

namespace troupe {

struct KeptStateCounters {
  std::uint64_t kept = 0;
  std::uint64_t found = 0;
  std::uint64_t given_up = 0;
};

class KeptStates {
 public:
  // One that a text has left whose tokens up to there these are; not if it is here already.
  void Keep(TokenIds tokens, SavedState state, std::string_view salt = {});

  // The one that stands furthest on in a text which begins with these tokens; null: none. Good
  // until the next call.
  const SavedState* Find(TokenIds tokens, std::string_view salt = {});

  // Lets go of the ones that were not used for longest. Gives how many; fewer if there are no more.
  std::size_t GiveUp(std::size_t places);

  // What it keeps without a salt, for who writes it down: what was used last comes last.
  struct Entry {
    TokenIds tokens;
    const SavedState* state;
  };
  std::vector<Entry> All() const;

  std::size_t size() const { return kept_.size(); }
  // Grows whenever All would tell of other states; not when they are only used.
  std::uint64_t changes() const { return counters_.kept + counters_.given_up; }
  const KeptStateCounters& counters() const { return counters_; }

 private:
  struct Kept {
    std::vector<TokenIds::value_type> tokens;
    std::string salt;
    SavedState state;
    std::uint64_t used = 0;
  };
  bool Touch(TokenIds tokens, std::string_view salt);  // whether it is here

  std::vector<Kept> kept_;  // as few as the pool has places
  std::uint64_t clock_ = 0;
  KeptStateCounters counters_;
};

}  // namespace troupe
