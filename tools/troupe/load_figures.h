// What a load test saw of a server, as figures, a table and the record of --json. Pure but for
// printing. Asking is server_load.h's part.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/status.h"

namespace troupe {

// Of one request. Seconds since it was to be sent (server_load.h).
struct SeenAnswer {
  Status status;                  // why it failed
  double late = 0;                // until it was sent
  double first = 0;               // to the first text
  double whole = 0;               // to the end
  std::vector<double> gaps = {};  // between two pieces of text
  std::size_t prompt_tokens = 0, tokens = 0;
};

struct TimeSummary {
  std::size_t count = 0;
  double p50 = 0, p90 = 0, p99 = 0, max = 0;  // seconds; 0 of no times
};
// p90 is the smallest of the times such that at least 90 % of them are no longer; the others alike.
TimeSummary Summarize(std::vector<double> seconds);

struct LoadFigures {
  std::size_t requests = 0, failed = 0;
  double seconds = 0;                         // of the whole test
  std::size_t prompt_tokens = 0, tokens = 0;  // of those that did not fail, as all below
  TimeSummary first, gap, whole;
  TimeSummary late;           // that requests were sent after their time, those that failed, too
  std::size_t cut = 0;        // requests cut to the context (load_plan.h)
  std::string first_failure;  // empty: none

  double TokensPerSecond() const { return PerSecond(tokens); }
  double PromptTokensPerSecond() const { return PerSecond(prompt_tokens); }

 private:
  double PerSecond(std::size_t count) const {
    return seconds > 0 ? static_cast<double>(count) / seconds : 0;
  }
};
LoadFigures FiguresOf(std::span<const SeenAnswer> answers, double seconds);

std::string LoadTable(const LoadFigures& figures);
Json LoadRecord(const LoadFigures& figures);

}  // namespace troupe
