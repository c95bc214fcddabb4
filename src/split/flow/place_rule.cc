#include "split/flow/place_rule.h"

#include <fmt/format.h>

#include <utility>

namespace troupe {
namespace {

// An answer that is under way leaves its place only for one that gains so much: what is known of
// places is not exact, and the other place has to read it all first.
constexpr double kWorthLeaving = 1.25;

// Drafts are worth their trouble only for such a gain.
constexpr double kWorthDrafting = 1.05;

class AlwaysAt final : public PlaceRule {
 public:
  explicit AlwaysAt(Side place, bool drafts = false) : place_(place), drafts_(drafts) {}

  std::string_view Name() const override { return drafts_ ? "drafts" : troupe::Name(place_); }
  PlaceChoice Choose(const AnswerTask&, const PlaceFacts&, std::optional<Side>) const override {
    return {.place = place_, .why = "as it was told", .drafts = drafts_};
  }

 private:
  const Side place_;
  const bool drafts_;
};

class SoonerFinish final : public PlaceRule {
 public:
  std::string_view Name() const override { return "auto"; }

  PlaceChoice Choose(const AnswerTask& task, const PlaceFacts& facts,
                     std::optional<Side> now) const override {
    // The cloud is the strong one, until somebody has measured.
    if (!facts.end || !facts.cloud) {
      const Side place = now.value_or(Side::kCloud);
      return {.place = place,
              .why = "not measured in both places yet",
              .drafts = facts.drafts_are_new && place == Side::kCloud};
    }
    const auto seconds = [&](Side place, const PlaceCosts& costs) {
      // Where it is under way, all has been read.
      return now == place ? costs.token_seconds * static_cast<double>(task.tokens)
                          : costs.FinishSeconds(task);
    };
    const double end = seconds(Side::kEnd, *facts.end);
    double cloud = seconds(Side::kCloud, *facts.cloud);
    std::string why = fmt::format("cloud {:.2f} s", cloud);
    bool drafts = facts.drafts_are_new;
    if (facts.drafts) {
      const double with = seconds(Side::kCloud, *facts.drafts);
      why += fmt::format(", with drafts {:.2f} s", with);
      if (kWorthDrafting * with < cloud) {
        drafts = true;
        cloud = with;
      }
    }
    why += fmt::format(", end {:.2f} s", end);
    Side place = end < cloud ? Side::kEnd : Side::kCloud;
    if (now && place != *now) {
      const double here = *now == Side::kEnd ? end : cloud;
      const double there = *now == Side::kEnd ? cloud : end;
      if (here < kWorthLeaving * there) place = *now;
    }
    return {.place = place, .why = std::move(why), .drafts = drafts && place == Side::kCloud};
  }
};

class RouteAware final : public PlaceRule {
 public:
  explicit RouteAware(const RouteAwareLimits& limits) : limits_(limits) {}

  std::string_view Name() const override { return "route-aware"; }

  PlaceChoice Choose(const AnswerTask& task, const PlaceFacts& facts,
                     std::optional<Side> now) const override {
    if (now) return {.place = *now, .why = "tasks stay where they were sent"};
    if (!facts.end || !facts.cloud) {
      return {.place = Side::kCloud, .why = "not measured in both places yet"};
    }
    const double load = facts.end->wait_seconds + facts.end->ComputeSeconds(task);
    const double priority = RoutePriority(task, *facts.end, *facts.cloud, limits_.epsilon);
    const bool stays = load <= limits_.end_seconds && priority >= limits_.beta;
    return {.place = stays ? Side::kEnd : Side::kCloud,
            .why = fmt::format("priority {:.3g} of {:.3g}, end's load {:.2f} s of {:.2f} s",
                               priority, limits_.beta, load, limits_.end_seconds)};
  }

 private:
  const RouteAwareLimits limits_;
};

}  // namespace

double RoutePriority(const AnswerTask& task, const PlaceCosts& end, const PlaceCosts& cloud,
                     double epsilon) {
  return end.ComputeSeconds(task) / (cloud.link_seconds + epsilon);
}

std::vector<std::string> PlaceRuleNames() {
  return {"auto", "cloud", "end", "drafts", "route-aware"};
}

Result<std::unique_ptr<PlaceRule>> MakePlaceRule(std::string_view name,
                                                 const RouteAwareLimits& limits) {
  std::unique_ptr<PlaceRule> rule;
  if (name == "auto") rule = std::make_unique<SoonerFinish>();
  if (name == "cloud") rule = std::make_unique<AlwaysAt>(Side::kCloud);
  if (name == "end") rule = std::make_unique<AlwaysAt>(Side::kEnd);
  if (name == "drafts") rule = std::make_unique<AlwaysAt>(Side::kCloud, /*drafts=*/true);
  if (name == "route-aware") rule = std::make_unique<RouteAware>(limits);
  if (rule == nullptr) {
    return InvalidArgument("no rule '{}', expected auto, cloud, end, drafts or route-aware", name);
  }
  return rule;
}

}  // namespace troupe
