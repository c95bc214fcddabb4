// How each slot of each token of a layer is answered: the sheet that the policies of a chain fill
// in one after the other. It holds them to what no policy may break: no two slots of a token on one
// expert, no substitute that is not in memory (or about to be, for another token's sake), no answer
// that a later policy takes back unless it gives the slot its own expert again. And it works out
// the weights once all have spoken, so that a token that nobody touched keeps its own bits.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "expert/substitution/routed_layer.h"

namespace troupe {

enum class AnswerKind : std::uint8_t {
  kKeep,        // the chosen expert, which may have to be waited for
  kSubstitute,  // another expert
  kLowBit,      // the chosen expert's copy of fewer bits
  kDrop,        // nothing
};

struct SlotAnswer {
  std::uint32_t expert = 0;  // that computes the slot; the chosen one unless it is substituted
  float weight = 0;          // of its answer in the token's sum; zero if dropped
  AnswerKind kind = AnswerKind::kKeep;

  bool operator==(const SlotAnswer&) const = default;
};

// What a substitute's answer weighs: as much as the expert's that it stands for, or what its own
// score is worth, as if the router had chosen it.
enum class SubstituteWeight : std::uint8_t { kOfTheSlot, kOfItsScore };

// What becomes of a dropped slot's weight: lost, or shared among the token's other slots.
enum class DroppedWeight : std::uint8_t { kLost, kShared };

class LayerAnswers {
 public:
  // All slots kept. `routed` and what it views must stay until the last question. An expert whose
  // load is under way counts as there, though not as a substitute.
  void Reset(const RoutedLayer& routed);

  const RoutedLayer& routed() const { return *routed_; }
  std::size_t tokens() const { return routed_->tokens(); }

  bool Resident(std::uint32_t expert) const {
    return routed_->residence[expert] == Residence::kResident;
  }
  // Computing its own expert costs a load that is not under way.
  bool Missing(std::uint32_t expert) const;
  // Missing, without an answer so far, and free to get one.
  bool Open(std::size_t token, std::uint32_t slot) const;
  bool HasOpen(std::size_t token) const;
  AnswerKind Kind(std::size_t token, std::uint32_t slot) const { return At(token, slot).kind; }
  // Slots of the token that do not get the expert they chose, at any precision.
  std::uint32_t Replaced(std::size_t token) const { return replaced_[token]; }
  // Of use to the token as a substitute: neither among its chosen experts nor a substitute in it
  // already. Says nothing of where it is.
  bool NewTo(std::size_t token, std::uint32_t expert) const;

  // `expert` is in memory or pledged, and new to the token; the slot is kept so far.
  void Substitute(std::size_t token, std::uint32_t slot, std::uint32_t expert,
                  SubstituteWeight weight);
  void TakeLowBit(std::size_t token, std::uint32_t slot);
  void Drop(std::size_t token, std::uint32_t slot, DroppedWeight weight);
  // Gives the slot its own expert back.
  void Restore(std::size_t token, std::uint32_t slot);
  // The expert will be loaded for a token that keeps it, so that others may count on it: slots that
  // chose it are kept from here on.
  void Pledge(std::uint32_t expert) { pledged_[expert] = true; }
  bool Pledged(std::uint32_t expert) const { return pledged_[expert]; }

  // Works out the weights. The span is good until the next Reset; call it once.
  std::span<const SlotAnswer> Finish();

 private:
  const SlotAnswer& At(std::size_t token, std::uint32_t slot) const {
    return answers_[token * routed_->top_k + slot];
  }
  SlotAnswer& At(std::size_t token, std::uint32_t slot) {
    return answers_[token * routed_->top_k + slot];
  }
  void Weigh(std::size_t token);

  const RoutedLayer* routed_ = nullptr;
  std::vector<SlotAnswer> answers_;
  std::vector<SubstituteWeight> substitute_weights_;  // [token][slot]
  std::vector<DroppedWeight> dropped_weights_;        // [token][slot]
  std::vector<std::uint32_t> replaced_;               // [token]
  std::vector<bool> pledged_;                         // [expert]
};

}  // namespace troupe
