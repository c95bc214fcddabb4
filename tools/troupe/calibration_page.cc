#include "troupe/calibration_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "troupe/counted.h"

namespace troupe {
namespace {

std::string Percent(double share, std::uint64_t tokens) {
  return tokens == 0 ? fmt::format("{:>11}", "-") : fmt::format("{:>9.1f} %", 100 * share);
}

// Of all layers that have the figure; weighed alike, as a token passes them all.
template <typename Figure>
ForecastQuality Mean(const ModelProfile& profile, Figure figure) {
  ForecastQuality mean;
  double layers = 0;
  for (const ProfiledLayer& layer : profile.forecasts) {
    const ForecastQuality& quality = figure(layer);
    if (quality.tokens == 0) continue;
    layers += 1;
    mean.tokens += quality.tokens;
    mean.similarity += quality.similarity;
    mean.expected += quality.expected;
    mean.guessed += quality.guessed;
  }
  if (layers == 0) return mean;
  mean.similarity /= layers;
  mean.expected /= layers;
  mean.guessed /= layers;
  return mean;
}

using QualityMember = double ForecastQuality::*;

// What is predicted of the next layer while this one computes: with what was learned, and without.
std::string Sentence(const ModelProfile& profile, bool ends) {
  const auto mean = [&profile](auto figure) { return 100 * Mean(profile, figure).guessed; };
  const double learned = mean(
      [](const ProfiledLayer& layer) -> const ForecastQuality& { return layer.corrected.front(); });
  const double plain = mean([](const ProfiledLayer& layer) -> const ForecastQuality& {
    return layer.plain[static_cast<std::size_t>(ForecastPlace::kGateBefore)];
  });
  return fmt::format(
      "{}: {:.0f} % of the experts that a layer uses will be predicted instead of {:.0f} %\n",
      ends ? "done" : "predictions learned", learned, plain);
}

// `of`: the quality that a layer, or the mean of all, has in a column.
template <typename Of>
std::string Row(const std::string& name, QualityMember figure, const Of& of) {
  std::string row = fmt::format("{:<9}", name);
  const auto add = [&row, figure](const ForecastQuality& quality) {
    row += Percent(quality.*figure, quality.tokens);
  };
  for (std::size_t i = 0; i < kForecastPlaces.size(); ++i) add(of(/*learned=*/false, i));
  row += "   ";
  for (std::size_t i = 0; i < kMostLayersAhead; ++i) add(of(/*learned=*/true, i));
  return row + "\n";
}

std::string MeanRow(const std::string& name, QualityMember figure, const ModelProfile& profile) {
  return Row(name, figure, [&profile](bool learned, std::size_t i) {
    return Mean(profile, [learned, i](const ProfiledLayer& layer) -> const ForecastQuality& {
      return learned ? layer.corrected[i] : layer.plain[i];
    });
  });
}

std::string ForecastTable(const ModelProfile& profile) {
  std::string table = fmt::format(
      "experts that a layer uses and that were predicted, of {}\n"
      "           by its router from what goes into               with what was learned,\n"
      "           the layer before       or its own               1, 2 and 3 layers ahead\n"
      "{:<9}{:>11}{:>11}{:>11}   {:>11}{:>11}{:>11}\n",
      Counted(profile.tokens, "token"), "layer", "attention", "router", "attention", 1, 2, 3);
  for (const ProfiledLayer& layer : profile.forecasts) {
    table += Row(fmt::format("{}", layer.layer), &ForecastQuality::guessed,
                 [&layer](bool learned, std::size_t i) {
                   return learned ? layer.corrected[i] : layer.plain[i];
                 });
  }
  table += MeanRow("mean", &ForecastQuality::guessed, profile);
  return table + MeanRow("top-k", &ForecastQuality::expected, profile) +
         "(top-k: the mean where no more experts are predicted than a token uses)\n";
}

std::string SharesTable(const ModelProfile& profile) {
  if (profile.shallow.empty()) return "";
  std::string table =
      fmt::format("\n{:>17} {:>20} {:>19} {:>28}\n", "experts in memory", "cache misses/token",
                  "not predicted/token", "first layers kept in memory");
  for (const ProfiledShare& share : profile.shallow) {
    const std::uint32_t best = BestShallow(share.costs);
    table += fmt::format("{:>15.1f} % {:>20.2f} {:>19.2f} {:>28}", 100 * share.share,
                         share.costs[best].misses, share.costs[best].uncovered, best);
    if (best > 0) {
      table +=
          fmt::format(" (none: {:.2f}, {:.2f})", share.costs[0].misses, share.costs[0].uncovered);
    }
    table += "\n";
  }
  return table;
}

}  // namespace

std::string CalibrationPage(const ModelProfile& profile, const std::string& path, bool ends) {
  return Sentence(profile, ends) +
         fmt::format(
             "left in {}, which runs of this model read when part of its experts are in memory\n\n",
             path) +
         ForecastTable(profile) + SharesTable(profile);
}

std::string RoutesPage(const TraceCalibration& learned, const std::string& path) {
  return fmt::format(
             "done: {} learned from\n"
             "left in {}, which runs of this model read when part of its experts are in memory\n\n"
             "of the experts that a layer uses, {:.1f} % were told by those of the layer before "
             "(paths), {:.1f} % by those of the token before\n"
             "what corrects the forecasts of the model's gates is not in a trace: --text learns "
             "it\n",
             Counted(learned.profile.tokens, "token"), path, 100 * learned.foresight.by_paths,
             100 * learned.foresight.by_previous) +
         SharesTable(learned.profile);
}

// Of the lists that are not empty.
double MeanCoverage(const BuddyLists& buddies) {
  double sum = 0, lists = 0;
  for (const std::vector<Buddy>& list : buddies.lists) {
    lists += list.empty() ? 0 : 1;
    for (const Buddy& buddy : list) sum += buddy.share;
  }
  return lists == 0 ? 0 : sum / lists;
}

std::string BuddiesPage(const BuddyProfile& profile, const std::string& path) {
  const std::vector<double> tau = profile.EntropyAt(BuddyProfile::kTauPercentile);
  double least = 1, most = 0;
  for (const BuddyLayer& layer : profile.layers) {
    least = std::min(least, tau[layer.layer]);
    most = std::max(most, tau[layer.layer]);
  }
  return fmt::format(
      "{:.1f} buddies for each expert: {:.1f} % of the experts that are chosen together with it\n"
      "left in {}, which --substitute buddies reads\n"
      "{} % of a layer's tokens have a router entropy below {:.3f} to {:.3f} (of 1), by layer\n",
      profile.buddies.MeanLength(), 100 * MeanCoverage(profile.buddies), path,
      BuddyProfile::kTauPercentile, least, most);
}

Json RoutesRecord(const TraceCalibration& learned, const std::string& path) {
  return {{"profile", path},
          {"tokens", learned.profile.tokens},
          {"told_by_paths", learned.foresight.by_paths},
          {"told_by_previous", learned.foresight.by_previous}};
}

Json CalibrationRecord(const ModelProfile& profile, const std::string& path) {
  Json record;
  record["profile"] = path;
  record["tokens"] = profile.tokens;
  const auto add = [&record](const std::string& name, const ForecastQuality& quality) {
    record[name] = {{"similarity", quality.similarity},
                    {"expected", quality.expected},
                    {"guessed", quality.guessed}};
  };
  for (const ForecastPlace place : kForecastPlaces) {
    add(std::string(Name(place)),
        Mean(profile, [place](const ProfiledLayer& layer) -> const ForecastQuality& {
          return layer.plain[static_cast<std::size_t>(place)];
        }));
  }
  for (std::size_t i = 0; i < kMostLayersAhead; ++i) {
    add(fmt::format("corrected {}", i + 1),
        Mean(profile, [i](const ProfiledLayer& layer) -> const ForecastQuality& {
          return layer.corrected[i];
        }));
  }
  return record;
}

}  // namespace troupe
