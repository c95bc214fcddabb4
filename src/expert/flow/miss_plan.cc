#include "expert/flow/miss_plan.h"

#include <fmt/core.h>

#include "base/check.h"

namespace troupe {

std::string_view Name(MissReason reason) {
  switch (reason) {
    case MissReason::kOnlyAnswer:
      return "nothing else is possible and allowed";
    case MissReason::kNotMeasured:
      return "nothing was measured to choose by";
    case MissReason::kUnderWay:
      return "under way, and nothing else would be better";
    case MissReason::kNoBetter:
      return "nothing else would be better";
    case MissReason::kBetter:
      return "better than loading it";
  }
  TROUPE_CHECK(false);
}

std::string_view Name(MissAnswer answer) {
  switch (answer) {
    case MissAnswer::kWait:
      return "wait";
    case MissAnswer::kLoad:
      return "load";
    case MissAnswer::kLoadLow:
      return "load low copy";
    case MissAnswer::kElsewhere:
      return "elsewhere";
    case MissAnswer::kSubstitute:
      return "substitute";
    case MissAnswer::kDrop:
      return "drop";
  }
  TROUPE_CHECK(false);
}

std::vector<std::string> Describe(const LayerMisses& layer, const MissPlan& plan) {
  std::vector<std::string> lines = {
      fmt::format("{} misses in {:.3f} ms; {:.3f} ms if all were loaded{}", plan.decisions.size(),
                  plan.seconds * 1e3, plan.all_loaded_seconds * 1e3,
                  plan.price > 0 ? fmt::format("; price {:.4g}", plan.price) : "")};
  for (const MissDecision& decision : plan.decisions) {
    const std::string answer =
        decision.answer == MissAnswer::kElsewhere
            ? fmt::format("{} computes it", layer.places[decision.place].name)
            : std::string(Name(decision.answer));
    lines.push_back(fmt::format("expert {}: {}, {:.3f} ms ({})", decision.expert, answer,
                                decision.seconds * 1e3, Name(decision.why)));
  }
  return lines;
}

}  // namespace troupe
