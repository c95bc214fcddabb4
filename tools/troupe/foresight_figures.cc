#include "troupe/foresight_figures.h"

#include <fmt/core.h>

#include <span>
#include <string_view>

namespace troupe {
namespace {

constexpr int kPrecisions[] = {70, 60, 50};  // %

double PercentOfAll(std::uint64_t part, std::uint64_t all) {
  return all == 0 ? 0 : 100 * static_cast<double>(part) / static_cast<double>(all);
}

Json DistancesJson(std::span<const ChanceHistogram> distances) {
  Json json = Json::Array();
  for (const ChanceHistogram& histogram : distances) {
    Json of_one = {{"misses", histogram.misses()}};
    for (const int precision : kPrecisions) {
      of_one[fmt::format("at_{}", precision)] = histogram.RecallAt(precision / 100.0);
    }
    Json said = Json::Array(), asked = Json::Array();
    for (const ChanceHistogram::Bin& bin : histogram.bins()) {
      said.push_back(bin.said);
      asked.push_back(bin.asked);
    }
    of_one["said"] = std::move(said);
    of_one["asked"] = std::move(asked);
    json.push_back(std::move(of_one));
  }
  return json;
}

std::string RecallLine(std::string_view whose, std::span<const ChanceHistogram> distances) {
  std::string line;
  for (std::size_t i = 0; i < distances.size(); ++i) {
    if (distances[i].misses() == 0) continue;
    line += fmt::format("{}{} layer{}", line.empty() ? "" : "; ", i + 1, i == 0 ? "" : "s");
    std::string_view between = " ";
    for (const int precision : kPrecisions) {
      line += fmt::format("{}{:.1f}", between, 100 * distances[i].RecallAt(precision / 100.0));
      between = ", ";
    }
  }
  if (line.empty()) return line;
  return fmt::format("\n    misses of the {} token predicted, % at a precision of 70, 60, 50 %: {}",
                     whose, line);
}

}  // namespace

Json ToJson(const Foresight& foresight) {
  Json json = {{"needed", foresight.needed},
               {"named", foresight.named},
               {"likely", foresight.likely},
               {"in_time", foresight.in_time}};
  Json from = Json::Array();
  for (const ForesightFrom& distance : foresight.from) {
    from.push_back({{"named", distance.named},
                    {"likely", distance.likely},
                    {"guesses", distance.guesses},
                    {"came_true", distance.came_true}});
  }
  json["by_layers_ahead"] = std::move(from);
  return json;
}

Json ToJson(const PassTime& time) {
  return {{"computing_s", time.computing_seconds},
          {"overlapped_s", time.overlapped_seconds},
          {"stall_s", time.stall_seconds}};
}

std::string ForesightFigures(const Foresight& foresight, std::uint64_t loads_ahead,
                             std::uint64_t asked_for) {
  std::string figures;
  if (foresight.needed > 0) {
    figures = fmt::format(
        "of the experts that had to be loaded {:.1f} % were predicted, {:.1f} % in time",
        PercentOfAll(foresight.likely, foresight.needed),
        PercentOfAll(foresight.in_time, foresight.needed));
  }
  if (loads_ahead > 0) {
    figures += fmt::format("{}of those loaded ahead {:.1f} % were used",
                           figures.empty() ? "" : "; ", PercentOfAll(asked_for, loads_ahead));
  }
  return figures;
}

Json ToJson(const JudgedChances& chances) {
  return {{"same_token", DistancesJson(chances.same_token)},
          {"next_token", DistancesJson(chances.next_token)}};
}

std::string RecallFigures(const JudgedChances& chances) {
  return RecallLine("same", chances.same_token) + RecallLine("next", chances.next_token);
}

std::string ForesightByDistance(const Foresight& foresight) {
  std::string lines;
  for (std::size_t i = 0; i < foresight.from.size(); ++i) {
    const ForesightFrom& from = foresight.from[i];
    if (from.named == 0 && from.guesses == 0) continue;
    lines += fmt::format(
        "foresight from {} layer{} ahead: of {} needed loads {:.1f} % named, {:.1f} % likely; of "
        "{} likely guesses of absent experts {:.1f} % came true\n",
        i + 1, i == 0 ? "" : "s", foresight.needed, PercentOfAll(from.named, foresight.needed),
        PercentOfAll(from.likely, foresight.needed), from.guesses,
        PercentOfAll(from.came_true, from.guesses));
  }
  return lines;
}

}  // namespace troupe
