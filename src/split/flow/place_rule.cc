#include "split/flow/place_rule.h"

#include <fmt/format.h>

namespace troupe {
namespace {

// An answer that is under way leaves its place only for one that gains so much: what is known of
// places is not exact, and the other place has to read it all first.
constexpr double kWorthLeaving = 1.25;

class AlwaysAt final : public PlaceRule {
 public:
  explicit AlwaysAt(Side place) : place_(place) {}

  std::string_view Name() const override { return troupe::Name(place_); }
  PlaceChoice Choose(const AnswerTask&, const PlaceFacts&, std::optional<Side>) const override {
    return {.place = place_, .why = "as it was told"};
  }

 private:
  const Side place_;
};

class SoonerFinish final : public PlaceRule {
 public:
  std::string_view Name() const override { return "auto"; }

  PlaceChoice Choose(const AnswerTask& task, const PlaceFacts& facts,
                     std::optional<Side> now) const override {
    // The cloud is the strong one, until somebody has measured.
    if (!facts.end || !facts.cloud) {
      return {.place = now.value_or(Side::kCloud), .why = "not measured in both places yet"};
    }
    const auto seconds = [&](Side place, const PlaceCosts& costs) {
      // Where it is under way, all has been read.
      return now == place ? costs.token_seconds * static_cast<double>(task.tokens)
                          : costs.FinishSeconds(task);
    };
    const double end = seconds(Side::kEnd, *facts.end);
    const double cloud = seconds(Side::kCloud, *facts.cloud);
    Side place = end < cloud ? Side::kEnd : Side::kCloud;
    if (now && place != *now) {
      const double here = *now == Side::kEnd ? end : cloud;
      const double there = *now == Side::kEnd ? cloud : end;
      if (here < kWorthLeaving * there) place = *now;
    }
    return {.place = place, .why = fmt::format("cloud {:.2f} s, end {:.2f} s", cloud, end)};
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

std::vector<std::string> PlaceRuleNames() { return {"auto", "cloud", "end", "route-aware"}; }

Result<std::unique_ptr<PlaceRule>> MakePlaceRule(std::string_view name,
                                                 const RouteAwareLimits& limits) {
  std::unique_ptr<PlaceRule> rule;
  if (name == "auto") rule = std::make_unique<SoonerFinish>();
  if (name == "cloud") rule = std::make_unique<AlwaysAt>(Side::kCloud);
  if (name == "end") rule = std::make_unique<AlwaysAt>(Side::kEnd);
  if (name == "route-aware") rule = std::make_unique<RouteAware>(limits);
  if (rule == nullptr) {
    return InvalidArgument("no rule '{}', expected auto, cloud, end or route-aware", name);
  }
  return rule;
}

}  // namespace troupe
