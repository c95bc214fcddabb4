// Where an answer is to be chosen: at the end, in the cloud, in the cloud with drafts of the end
// that it checks, or in the cloud behind layers that the end computes. By what each would take, by
// the rule of EC2MoE, or always in one way. The same objects serve live requests, the bench and
// tests; what places cost is place_costs.h's and cut_plan.h's. Pure.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "split/flow/cut_plan.h"
#include "split/flow/place_costs.h"
#include "split/flow/side.h"

namespace troupe {

// Absent: nobody has measured there yet.
struct PlaceFacts {
  std::optional<PlaceCosts> end, cloud;
  // The cloud, while the end drafts; absent: it cannot, or nobody can say.
  std::optional<PlaceCosts> drafts = {};
  bool drafts_are_new = false;  // they can be made, and nobody has measured them
  // The best cut of this prompt between two layers; absent: it cannot be cut.
  std::optional<CutPlan> cut = {};
  bool cuts_are_new = false;  // nobody has measured one
  double cut_factor =
      1;  // what recent cuts took, as a factor of what was predicted (forecast_factor.h)
};

// An answer that is being chosen somewhere, or waits there.
struct UnderWay {
  Side place = Side::kEnd;
  double wait_seconds = 0;  // for others, before it is read
  std::size_t to_read = 0;  // of its tokens, there
  bool waits = false;       // nobody reads it: nothing is lost if it leaves
  // What its tokens take there (token_pace.h); 0: what new answers are expected to take. Only that
  // of the cloud counts: the end's own figures are of now.
  double token_seconds = 0;
  bool drafts = false;  // it has them
};

struct PlaceChoice {
  Side place = Side::kCloud;
  std::string why;                  // "cloud 1.20 s, end 3.40 s"
  double seconds = 0;               // that it is expected to take there; 0: nobody can say
  double token_seconds = 0;         // of these, each token that is chosen
  double factor = 1;                // by which these were multiplied, PlaceFacts::cut_factor
  bool drafts = false;              // by the end, for the cloud
  std::optional<CutPlan> cut = {};  // the end computes the first layers of the prompt

  bool operator==(const PlaceChoice&) const = default;
};

struct RouteAwareLimits {
  double alpha = 0.5;      // of Eq. 9, which only tests and benches compute
  double beta = 1;         // least priority of what stays at the end
  double end_seconds = 2;  // T_end: of work that the end may have at a time
  double epsilon = 1e-6;
};

class PlaceRule {
 public:
  virtual ~PlaceRule() = default;

  virtual std::string_view Name() const = 0;
  // `now`: where the answer is under way, which it must be worth leaving; absent: it is new.
  virtual PlaceChoice Choose(const AnswerTask& task, const PlaceFacts& facts,
                             const std::optional<UnderWay>& now) const = 0;
};

// "auto": who is expected to finish sooner. "cloud", "end": always there. "drafts": always in the
// cloud, with drafts. "route-aware": the paper's rule (Eq. 10 and 11). "layers": prompts are cut
// wherever they can be, other answers are chosen as by "auto".
std::vector<std::string> PlaceRuleNames();
Result<std::unique_ptr<PlaceRule>> MakePlaceRule(std::string_view name,
                                                 const RouteAwareLimits& limits = {});

// Eq. 10, with what the end would compute and what the link to the cloud would take.
double RoutePriority(const AnswerTask& task, const PlaceCosts& end, const PlaceCosts& cloud,
                     double epsilon);

}  // namespace troupe
