// What `troupe replay` shows of a trace: a table, a record, and plots (replay_plots.cc).
#pragma once

#include <string>
#include <vector>

#include "sim/replay/replay.h"
#include "troupe/json_record.h"

namespace troupe {

struct ReplayReport {
  std::string trace;
  TraceHeader header;
  std::uint32_t group = 0;
  std::uint64_t expert_bytes = 0;  // 0: not known
  bool timed = false;
  std::vector<ReplayOutcome> outcomes;
  double seconds = 0;  // that the replay took
  TraceDamage damage;  // of the trace
};

double ShareOf(const ReplayReport& report, const ReplaySpec& spec);  // of all experts in memory
// What makes it other than the policy alone: "", or "eap, smoe:alpha=0.3".
std::string VariantOf(const ReplaySpec& spec);
std::string NameOf(const ReplaySpec& spec);
double PerToken(double all, const ReplayResult& result);
double BytesPerToken(const ReplayReport& report, const ReplayResult& result);
// Whether some answers were not exact.
bool Substitutes(const ReplayReport& report);

void Print(const ReplayReport& report);
Json ToJson(const ReplayReport& report);
// An SVG, or a page if the name ends in .html.
std::string Plot(const std::vector<ReplayReport>& reports, const std::string& name);

}  // namespace troupe
