#include "troupe/load_figures.h"

#include <fmt/format.h>

#include <algorithm>

#include "troupe/counted.h"

namespace troupe {
namespace {

// Of times in ascending order, at least one.
double Percentile(const std::vector<double>& times, std::size_t percent) {
  const std::size_t rank = (times.size() * percent + 99) / 100;  // rounded up
  return times[std::max<std::size_t>(rank, 1) - 1];
}

std::string TimesLine(std::string_view what, const TimeSummary& times) {
  const auto ms = [](double seconds) { return fmt::format("{:.1f}", 1e3 * seconds); };
  return fmt::format("{:<24} {:>10} {:>10} {:>10} {:>10}\n", what, ms(times.p50), ms(times.p90),
                     ms(times.p99), ms(times.max));
}

Json TimesRecord(const TimeSummary& times) {
  return {{"count", times.count},
          {"p50", times.p50},
          {"p90", times.p90},
          {"p99", times.p99},
          {"max", times.max}};
}

}  // namespace

TimeSummary Summarize(std::vector<double> seconds) {
  if (seconds.empty()) return {};
  std::sort(seconds.begin(), seconds.end());
  return {.count = seconds.size(),
          .p50 = Percentile(seconds, 50),
          .p90 = Percentile(seconds, 90),
          .p99 = Percentile(seconds, 99),
          .max = seconds.back()};
}

LoadFigures FiguresOf(std::span<const SeenAnswer> answers, double seconds) {
  LoadFigures figures{.requests = answers.size(), .seconds = seconds};
  std::vector<double> first, gaps, whole, late;
  for (const SeenAnswer& answer : answers) {
    late.push_back(answer.late);
    if (!answer.status.ok()) {
      ++figures.failed;
      if (figures.first_failure.empty()) figures.first_failure = answer.status.message();
      continue;
    }
    figures.prompt_tokens += answer.prompt_tokens;
    figures.tokens += answer.tokens;
    if (answer.first > 0) first.push_back(answer.first);
    gaps.insert(gaps.end(), answer.gaps.begin(), answer.gaps.end());
    whole.push_back(answer.whole);
  }
  figures.first = Summarize(std::move(first));
  figures.gap = Summarize(std::move(gaps));
  figures.whole = Summarize(std::move(whole));
  figures.late = Summarize(std::move(late));
  return figures;
}

std::string LoadTable(const LoadFigures& figures) {
  return fmt::format(
             "{} answered in {:.2f} s, {:.1f} tokens/s; the first token of an answer after "
             "{:.1f} ms, each further one after {:.1f} ms (medians)\n\n",
             Counted(figures.requests - figures.failed, "request"), figures.seconds,
             figures.TokensPerSecond(), 1e3 * figures.first.p50, 1e3 * figures.gap.p50) +
         fmt::format("{:>9} {:>7} {:>9} {:>10} {:>16}\n", "requests", "failed", "seconds",
                     "tokens/s", "prompt tokens/s") +
         fmt::format("{:>9} {:>7} {:>9.2f} {:>10.1f} {:>16.1f}\n\n", figures.requests,
                     figures.failed, figures.seconds, figures.TokensPerSecond(),
                     figures.PromptTokensPerSecond()) +
         fmt::format("{:<24} {:>10} {:>10} {:>10} {:>10}\n", "milliseconds", "median", "p90", "p99",
                     "max") +
         TimesLine("to the first token", figures.first) + TimesLine("between tokens", figures.gap) +
         TimesLine("whole answer", figures.whole) +
         (figures.late.max > 0 ? TimesLine("sent late by", figures.late) : std::string());
}

Json LoadRecord(const LoadFigures& figures) {
  return {{"requests", figures.requests},
          {"failed", figures.failed},
          {"first_failure",
           figures.first_failure.empty() ? Json(nullptr) : Json(figures.first_failure)},
          {"seconds", figures.seconds},
          {"tokens", figures.tokens},
          {"tokens_per_s", figures.TokensPerSecond()},
          {"prompt_tokens", figures.prompt_tokens},
          {"prompt_tokens_per_s", figures.PromptTokensPerSecond()},
          {"time_to_first_token_s", TimesRecord(figures.first)},
          {"time_between_tokens_s", TimesRecord(figures.gap)},
          {"whole_s", TimesRecord(figures.whole)},
          {"sent_late_s", TimesRecord(figures.late)},
          {"cut_to_context", figures.cut}};
}

}  // namespace troupe
