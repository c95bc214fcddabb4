// What calibration found out about a model (docs/formats/profile.md): how well its gates predict,
// layer by layer, how many shallow layers to cache fully, what forecasts miss, and which experts
// followed which. Lies beside the model as readable JSON; a run that finds it begins with it. It
// never changes an answer.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "expert/forecast/activation_path.h"
#include "expert/forecast/forecast_study.h"
#include "expert/forecast/gate_correction.h"
#include "expert/forecast/shallow_choice.h"

namespace troupe {

struct ProfiledLayer {
  std::uint32_t layer = 0;
  std::array<ForecastQuality, kForecastPlaces.size()> plain;
  std::array<ForecastQuality, kMostLayersAhead> corrected;  // from 1, 2, ... layers ahead

  bool operator==(const ProfiledLayer&) const = default;
};

// The cost of each L for a cache that holds this share of the experts.
struct ProfiledShare {
  double share = 0;
  std::vector<ShallowCost> costs;

  bool operator==(const ProfiledShare&) const = default;
};

struct ModelProfile {
  std::string fingerprint;  // of the model
  std::string text;         // that was read
  std::uint64_t tokens = 0;
  std::uint32_t layers = 0, experts = 0;
  std::vector<ProfiledLayer> forecasts;
  std::vector<ProfiledShare> shallow;  // by rising share
  std::vector<LearnedForecast> learned;
  std::vector<SeenPaths> paths;

  // Of the share measured that is nearest.
  std::uint32_t ShallowLayersFor(double share) const;

  bool operator==(const ModelProfile&) const = default;
};

// "m.gguf" gives "m.profile.json".
std::string ProfilePathFor(std::string_view model_path);

Status SaveProfile(const ModelProfile& profile, const std::string& path);
// Refuses files of another format or version, and numbers that cannot be.
Result<ModelProfile> LoadProfile(const std::string& path);

}  // namespace troupe
