#include "split/flow/place_rule.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace troupe {
namespace {

// A new answer begins at the end only for such a gain. Where both are about as soon it is a guess
// who is sooner, and the two ways to be wrong differ: what waits in the cloud can still move, and
// what the end has begun it computes for nothing if the cloud becomes free.
constexpr double kWorthBeginningHere = 1.1;

// An answer that is under way leaves its place only for one that gains so much: what is known of
// places is not exact, and the other place has to read it all first. And for such a part of the
// time that its place has put into it, which is spent again there, where others wait for it.
constexpr double kWorthLeaving = 1.25, kOfWhatIsDone = 0.5;

// Drafts are worth their trouble only for such a gain.
constexpr double kWorthDrafting = 1.05;

// A prompt is cut only if it would still end sooner with the cut taking this many times as long as
// predicted. What was learned of cuts that nobody disturbed says little of those among others that
// come a moment later, and whose passes each chunk waits for: such took six times what was
// predicted.
constexpr double kCutSurprise = 1.5;

std::string Describe(const CutPlan& cut) {
  return fmt::format("cut before layer {}, {} tokens at a time, {:.3f} s{}", cut.layer, cut.chunk,
                     cut.seconds, cut.prefix > 0 ? " to its first token" : "");
}

// By what the tokens of an answer take that is in the cloud. With drafts that says nothing of what
// it would be without, but that drafts are never later than that by much.
void CorrectBy(const UnderWay& there, PlaceCosts& without, std::optional<PlaceCosts>& with) {
  const double seconds = there.token_seconds;
  if (!there.drafts) {
    const double off_by = seconds / without.token_seconds;
    without.token_seconds = seconds;
    if (with) with->token_seconds *= off_by;
    return;
  }
  without.token_seconds = std::max(without.token_seconds, seconds);
  if (with) with->token_seconds = seconds;
}

// Seconds that a place has put into reading an answer that it would lose.
double ReadSecondsDone(const AnswerTask& task, const UnderWay& now, const PlaceCosts& here) {
  if (now.wait_seconds > 0) return 0;
  const std::size_t read = task.In(now.place).read;
  return here.read_seconds * static_cast<double>(read - std::min(read, now.to_read));
}

class AlwaysAt final : public PlaceRule {
 public:
  explicit AlwaysAt(Side place, bool drafts = false) : place_(place), drafts_(drafts) {}

  std::string_view Name() const override { return drafts_ ? "drafts" : troupe::Name(place_); }
  PlaceChoice Choose(const AnswerTask&, const PlaceFacts&,
                     const std::optional<UnderWay>&) const override {
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
                     const std::optional<UnderWay>& now) const override {
    std::optional<CutPlan> cut = now ? std::nullopt : facts.cut;
    // What nobody has measured is tried where hardly more than a prompt is at stake, and where it
    // waits for nobody: among others each of its chunks waits for a pass of theirs.
    const bool is_busy = (facts.cloud && facts.cloud->wait_seconds > 0) ||
                         (facts.end && facts.end->wait_seconds > 0);
    if (cut && facts.cuts_are_new && (cut->prefix > 0 || is_busy)) cut.reset();
    if (cut && facts.cuts_are_new) {
      return {.place = Side::kCloud,
              .why = "cuts are not measured yet",
              .seconds = facts.cut_factor * cut->seconds,
              .factor = facts.cut_factor,
              .cut = cut};
    }
    // The cloud is the strong one, until somebody has measured.
    if (!facts.end || !facts.cloud) {
      const Side place = now ? now->place : Side::kCloud;
      return {.place = place,
              .why = "not measured in both places yet",
              .drafts = facts.drafts_are_new && place == Side::kCloud};
    }
    const auto seconds = [&](Side place, const PlaceCosts& costs) {
      if (!now || now->place != place) return costs.FinishSeconds(task.In(place));
      return now->wait_seconds +
             costs.ComputeSeconds({.read = now->to_read, .tokens = task.tokens});
    };
    PlaceCosts without = *facts.cloud;
    std::optional<PlaceCosts> with_drafts = facts.drafts;
    if (now && now->place == Side::kCloud && now->token_seconds > 0) {
      CorrectBy(*now, without, with_drafts);
    }
    const double end = seconds(Side::kEnd, *facts.end);
    double cloud = seconds(Side::kCloud, without);
    std::string why = fmt::format("cloud {:.2f} s", cloud);
    bool drafts = facts.drafts_are_new;
    double token_seconds = without.token_seconds;
    if (with_drafts) {
      const double with = seconds(Side::kCloud, *with_drafts);
      why += fmt::format(", with drafts {:.2f} s", with);
      if (kWorthDrafting * with < cloud) {
        drafts = true;
        cloud = with;
        token_seconds = with_drafts->token_seconds;
      }
    }
    why += fmt::format(", end {:.2f} s", end);
    if (cut) {
      cut->seconds *= facts.cut_factor;
      why += ", " + Describe(*cut);
      const bool goes_on = cut->prefix > 0;
      const double rest = goes_on ? token_seconds * static_cast<double>(task.tokens) : 0;
      if (kCutSurprise * cut->seconds + rest < std::min(cloud, end)) {
        return {.place = Side::kCloud,
                .why = std::move(why),
                .seconds = cut->seconds + rest,
                .token_seconds = goes_on ? token_seconds : 0,
                .factor = facts.cut_factor,
                .drafts = drafts && goes_on,
                .cut = cut};
      }
      if (cut->seconds + rest < std::min(cloud, end)) why += ", later if it is disturbed";
    }
    Side place = (now ? end : kWorthBeginningHere * end) < cloud ? Side::kEnd : Side::kCloud;
    if (now && place != now->place) {
      const bool is_here = now->place == Side::kEnd;
      const double stays = is_here ? end : cloud, leaves = is_here ? cloud : end;
      const double done = ReadSecondsDone(task, *now, is_here ? *facts.end : *facts.cloud);
      if (stays < kWorthLeaving * leaves + kOfWhatIsDone * done) place = now->place;
    }
    return {.place = place,
            .why = std::move(why),
            .seconds = place == Side::kEnd ? end : cloud,
            .token_seconds = place == Side::kEnd ? facts.end->token_seconds : token_seconds,
            .drafts = drafts && place == Side::kCloud};
  }
};

class CutWherePossible final : public PlaceRule {
 public:
  std::string_view Name() const override { return "layers"; }
  PlaceChoice Choose(const AnswerTask& task, const PlaceFacts& facts,
                     const std::optional<UnderWay>& now) const override {
    PlaceChoice choice = others_.Choose(task, facts, now);
    if (now || !facts.cut) return choice;
    return {.place = Side::kCloud,
            .why = Describe(*facts.cut),
            .drafts = facts.cut->prefix > 0 && choice.drafts && choice.place == Side::kCloud,
            .cut = facts.cut};
  }

 private:
  SoonerFinish others_;
};

class RouteAware final : public PlaceRule {
 public:
  explicit RouteAware(const RouteAwareLimits& limits) : limits_(limits) {}

  std::string_view Name() const override { return "route-aware"; }

  PlaceChoice Choose(const AnswerTask& task, const PlaceFacts& facts,
                     const std::optional<UnderWay>& now) const override {
    if (now) return {.place = now->place, .why = "tasks stay where they were sent"};
    if (!facts.end || !facts.cloud) {
      return {.place = Side::kCloud, .why = "not measured in both places yet"};
    }
    const AnswerTask here = task.In(Side::kEnd);
    const double load = facts.end->wait_seconds + facts.end->ComputeSeconds(here);
    const double priority = RoutePriority(here, *facts.end, *facts.cloud, limits_.epsilon);
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
  return {"auto", "cloud", "end", "drafts", "layers", "route-aware"};
}

Result<std::unique_ptr<PlaceRule>> MakePlaceRule(std::string_view name,
                                                 const RouteAwareLimits& limits) {
  std::unique_ptr<PlaceRule> rule;
  if (name == "auto") rule = std::make_unique<SoonerFinish>();
  if (name == "cloud") rule = std::make_unique<AlwaysAt>(Side::kCloud);
  if (name == "end") rule = std::make_unique<AlwaysAt>(Side::kEnd);
  if (name == "drafts") rule = std::make_unique<AlwaysAt>(Side::kCloud, /*drafts=*/true);
  if (name == "layers") rule = std::make_unique<CutWherePossible>();
  if (name == "route-aware") rule = std::make_unique<RouteAware>(limits);
  if (rule == nullptr) {
    return InvalidArgument("no rule '{}', expected auto, cloud, end, drafts, layers or route-aware",
                           name);
  }
  return rule;
}

}  // namespace troupe
