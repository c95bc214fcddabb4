// What `--substitute help` prints, in the order of kPolicies (substitution_spec.cc). That what it
// names is read there is tested.
#include "expert/substitution/substitution_spec.h"

namespace troupe {

std::string SubstitutionHelp() {
  return R"(A chain is one policy or several, joined by +. Each answers for missing experts that
those before it left; what none answers for is loaded. A policy's options follow its name:

  --substitute smoe:alpha=0.3+drop:most-share=0.1

drop, best-live, random and top take the gates of buddies, too, and hold them to the same tokens and
passes: tau, temperature, gamma, beta and budget. All of these are open unless given (tau -1).

smoe       a resident expert of like score in place of one of low score
  alpha        how far from the first score not chosen 'low' and 'like' reach; 0: nowhere (0.3)
buddies    a resident expert that is often chosen together with the missing one
  tau          only in tokens whose scores have more entropy than this, -1 to 1; layers: as
               calibrated for each layer (0.5)
  temperature  of the scores when entropy is taken (1)
  gamma        only in tokens whose first score leads by less, 0 to 2; 2: in all (2)
  beta         only in passes that miss a smaller share of their experts; above 1: in all (1.5)
  budget       in place of beta: only in layers that miss more experts than this (0: beta decides)
  rho          most slots of a token that are replaced, or all (3)
  rank         how many buddies of an expert are looked at (16)
  eta          how much the token's own score of a buddy counts (0)
  best-first   1: the token's best slots first; 0: the least first (0)
low-bit    the missing expert's own copy of fewer bits (`troupe pack --low`)
  most-share   only slots of at most this share of the token's weight (1)
drop       nothing in place of the missing expert
  most-share   only slots of at most this share of the token's weight (1)
  renormalise  1: the other slots take its weight; 0: the weight is lost (0)
  rho          most slots of a token that are replaced or dropped, or all (all)
bias       experts ranked anew with a bonus for resident ones
  bonus        as a share of the distance from the token's highest to its lowest score (0.1)
  rho          most slots of a token that are replaced, or all (all)
reunite    takes back what saves no load, as another token waits for the expert; goes last

Controls, to compare with:
best-live  the resident expert of the best score
  most-share   only slots of at most this share of the token's weight (1)
  rho          most slots of a token that are replaced, or all (all)
random     any resident expert
  most-share   only slots of at most this share of the token's weight (1)
  rho          most slots of a token that are replaced, or all (all)
  seed         of the choice (1)
top        only the first experts of every token, missing or not
  keep         how many (1)
  most-share   and of the others only slots of at most this share of its weight (1)
)";
}

}  // namespace troupe
