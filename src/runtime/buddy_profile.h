// What calibration found out about which experts may stand in for which (docs/formats/buddies.md):
// buddy lists, how often experts were chosen, and how evenly tokens spread their weight, layer by
// layer. Lies beside the model as readable JSON. Nothing reads it unless a substitution chain that
// needs it was asked for.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "expert/substitution/buddy_lists.h"
#include "expert/substitution/substitution_spec.h"
#include "gguf/reader.h"

namespace troupe {

// How little the first tokens of a window count: their routing says less of what is to come.
struct WarmUp {
  std::uint32_t tokens = 16;
  double least = 0.25;  // the very first

  bool operator==(const WarmUp&) const = default;
};

struct BuddyLayer {
  std::uint32_t layer = 0;
  std::vector<double> activations;  // [expert], tokens that chose it; those of a warm-up count less
  std::vector<double> entropy;      // of tokens: the 0th, 5th, ... 100th percentile

  bool operator==(const BuddyLayer&) const = default;
};

struct BuddyProfile {
  static constexpr std::uint32_t kPercentStep = 5;
  // Of the paper's range of 10 to 20, which tau=layers stands for.
  static constexpr std::uint32_t kTauPercentile = 15;

  std::string fingerprint;  // of the model
  std::string text;         // that was read
  std::uint64_t tokens = 0;
  std::uint32_t top_k = 0;
  WarmUp warm_up;
  BuddyOptions options;            // that the lists were made by
  BuddyLists buddies;              // layers without experts have empty lists
  std::vector<BuddyLayer> layers;  // those with experts

  // The entropy that `percent` of each layer's tokens lie below, percent a multiple of the step. Of
  // layers without experts it is 1: no token may change.
  std::vector<double> EntropyAt(std::uint32_t percent) const;

  bool operator==(const BuddyProfile&) const = default;
};

// "m.gguf" gives "m.buddies.json".
std::string BuddiesPathFor(std::string_view model_path);

Status SaveBuddies(const BuddyProfile& profile, const std::string& path);
// Refuses files of another format or version, and numbers that cannot be.
Result<BuddyProfile> LoadBuddies(const std::string& path);

// What a chain needs beyond its options: nothing, and nothing is read, unless it has buddies. Their
// file is the one named, or that beside the model; it has to be this model's.
Result<SubstitutionMaterial> LoadMaterial(std::string_view chain, const GgufModel& model,
                                          ExpertGrid grid, const std::string& path = {});

}  // namespace troupe
