#include "expert/substitution/substitution_chain.h"

#include <fmt/core.h>

#include <algorithm>

#include "base/check.h"

namespace troupe {
namespace {

enum Wanted : std::uint8_t { kByRouter = 1, kByAnswers = 2 };

}  // namespace

SubstitutionChain::SubstitutionChain(std::vector<std::unique_ptr<SubstitutionPolicy>> links,
                                     const SubstitutionLimits& limits)
    : links_(std::move(links)), limits_(limits) {
  for (const auto& link : links_) TROUPE_CHECK(link != nullptr);
}

std::span<const SlotAnswer> SubstitutionChain::Answer(const RoutedLayer& routed) {
  answers_.Reset(routed);
  if (routed.tokens() > limits_.most_tokens) {
    ++counts_.passed_over;
    return answers_.Finish();
  }
  for (const auto& link : links_) link->Answer(answers_);
  const std::span<const SlotAnswer> answers = answers_.Finish();
  Count(answers);
  return answers;
}

void SubstitutionChain::Count(std::span<const SlotAnswer> answers) {
  const RoutedLayer& routed = answers_.routed();
  wanted_.assign(routed.experts, 0);
  ++counts_.layers;
  counts_.tokens += routed.tokens();
  counts_.slots += answers.size();
  for (std::size_t i = 0; i < answers.size(); ++i) {
    const std::uint32_t chosen = routed.chosen[i].expert;
    const bool missing = answers_.Missing(chosen);
    counts_.missing += missing ? 1 : 0;
    if (missing) wanted_[chosen] |= kByRouter;
    switch (answers[i].kind) {
      case AnswerKind::kKeep:
        counts_.waited += missing ? 1 : 0;
        if (missing) wanted_[chosen] |= kByAnswers;
        break;
      case AnswerKind::kSubstitute:
        ++counts_.substituted;
        break;
      case AnswerKind::kLowBit:
        ++counts_.low_bit;
        break;
      case AnswerKind::kDrop:
        ++counts_.dropped;
        break;
    }
  }
  for (std::size_t token = 0; token < routed.tokens(); ++token) {
    counts_.tokens_changed += answers_.Replaced(token) > 0 ? 1 : 0;
  }
  for (const std::uint8_t wanted : wanted_) {
    counts_.loads_before += (wanted & kByRouter) != 0 ? 1 : 0;
    counts_.loads_after += (wanted & kByAnswers) != 0 ? 1 : 0;
  }
}

double SubstitutionChain::BorderShare() const {
  double largest = 0;
  for (const auto& link : links_) largest = std::max(largest, link->BorderShare());
  return largest;
}

bool SubstitutionChain::NeedsLowCopies() const {
  return std::ranges::any_of(links_, [](const auto& link) { return link->NeedsLowCopies(); });
}

bool SubstitutionChain::TakesOthers() const {
  return std::ranges::any_of(links_, [](const auto& link) { return link->TakesOthers(); });
}

std::string ToString(const SubstitutionChain& chain) {
  if (chain.exact()) return "exact";
  std::string text;
  for (const auto& link : chain.links()) {
    if (!text.empty()) text += '+';
    text += link->ToString();
  }
  return text;
}

ChainReport SubstitutionChain::Report() const {
  ChainReport report{.chain = ToString(*this), .limits = limits_, .counts = counts_, .links = {}};
  for (const auto& link : links_) {
    report.links.push_back({.link = link->ToString(), .counts = link->counts()});
  }
  return report;
}

double ChainReport::ReplacedShare() const {
  const std::uint64_t replaced = counts.substituted + counts.low_bit + counts.dropped;
  return counts.slots == 0 ? 0 : static_cast<double>(replaced) / static_cast<double>(counts.slots);
}

std::string Explain(const ChainReport& report) {
  const SubstitutionCounts& counts = report.counts;
  std::string text = fmt::format("substitution {}, passes of at most {} tokens\n", report.chain,
                                 report.limits.most_tokens);
  text += fmt::format(
      "  {} of {} slots missed: {} waited, {} substituted, {} from low-bit copies, {} dropped; "
      "loads {} instead of {}\n",
      counts.missing, counts.slots, counts.waited, counts.substituted, counts.low_bit,
      counts.dropped, counts.loads_after, counts.loads_before);
  for (const ChainReport::Link& link : report.links) {
    text += fmt::format("  {}:", link.link);
    for (const NamedCount& count : link.counts) {
      text += fmt::format(" {} {}", count.name, count.count);
    }
    text += '\n';
  }
  return text;
}

}  // namespace troupe
