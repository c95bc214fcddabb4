#include "troupe/replay_substitution.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <memory>
#include <optional>

#include "expert/substitution/substitution_spec.h"
#include "sim/replay/trace_buddies.h"
#include "trace/trace_summary.h"
#include "troupe/percent.h"
#include "troupe/remark.h"

namespace troupe {
void ReplaySubstitutionFlags::AddTo(Options& options) {
  options
      .Add("--substitute", specs_,
           "Replace missing experts, as smoe:alpha=0.3 or buddies+drop, and count it; exact: load "
           "them (exact)")
      .SeparatedBy(',')
      .Answers("help", SubstitutionHelp)
      .Suggest({"exact", "help"})
      .Type("CHAIN,CHAIN,…");
  options
      .Add(
          "--buddies", buddies_,
          "Learn which experts can replace which from another TRACE, or from the first PERCENT% of "
          "this one, which is then not played")
      .Type("TRACE|PERCENT%");
}

std::vector<std::string> ReplaySubstitutionFlags::specs() const {
  return specs_.empty() ? std::vector<std::string>{"exact"} : specs_;
}

Status ReplaySubstitutionFlags::CheckUsage() const {
  bool wanted = false;
  for (const std::string& spec : specs_) {
    if (spec.find(';') != std::string::npos) {
      return InvalidArgument("--substitute: '{}' found: chains are separated by commas", spec);
    }
    const SubstitutionMaterial any{.buddies = std::make_shared<const BuddyLists>()};
    const Result<SubstitutionChain> chain = ParseSubstitution(spec, any);
    if (!chain.ok()) return InvalidArgument("--substitute: {}", chain.status().message());
    if (chain->NeedsLowCopies()) {
      return InvalidArgument("--substitute: '{}': a trace has no copies of fewer bits", spec);
    }
    wanted = wanted || std::ranges::any_of(chain->links(), [](const auto& link) {
               return link->name() == "buddies";
             });
  }
  if (wanted && buddies_.empty()) {
    return InvalidArgument("--substitute buddies needs --buddies TRACE or PERCENT%");
  }
  if (!wanted && !buddies_.empty()) {
    return InvalidArgument("--buddies needs --substitute buddies");
  }
  const std::optional<double> percent = PercentOf(buddies_);
  if (percent && !(*percent > 0 && *percent < 100)) {
    return InvalidArgument("--buddies: {}, expected more than 0 % and less than 100 %", buddies_);
  }
  return OkStatus();
}

Status ReplaySubstitutionFlags::Prepare(TraceReader& reader, const std::string& path,
                                        ReplayOptions& options) const {
  if (!asked()) return OkStatus();
  if (!buddies_.empty()) {
    TROUPE_RETURN_IF_ERROR(PercentOf(buddies_) ? LearnFromPart(reader, options)
                                               : LearnFrom(reader, path, options));
  }
  if (reader.header().scores == ScoreKind::kNone) {
    Remark("note: {}: has no scores; the chosen experts of a token count as equals\n", path);
  } else if (!reader.header().all_scores) {
    Remark(
        "note: {}: has no scores of experts that were not chosen; what needs them (smoe, "
        "best-live, bias) keeps everything and counts it as unknown\n",
        path);
  }
  return OkStatus();
}

Status ReplaySubstitutionFlags::LearnFromPart(TraceReader& reader, ReplayOptions& options) const {
  TROUPE_ASSIGN_OR_RETURN(const TraceSummary summary, Summarize(reader));
  reader.Rewind();
  const double share = *PercentOf(buddies_) / 100;
  options.skip = std::max<std::uint64_t>(
      1, static_cast<std::uint64_t>(share * static_cast<double>(summary.tokens)));
  TROUPE_ASSIGN_OR_RETURN(options.material.buddies, LearnBuddies(reader, options.skip));
  reader.Rewind();
  return OkStatus();
}

Status ReplaySubstitutionFlags::LearnFrom(const TraceReader& reader, const std::string& path,
                                          ReplayOptions& options) const {
  TROUPE_ASSIGN_OR_RETURN(TraceReader other, TraceReader::Open(buddies_));
  std::error_code error;
  if (std::filesystem::equivalent(path, buddies_, error)) {
    return InvalidArgument(
        "{}: the trace that is replayed; --buddies takes another one of the model, or a part of "
        "this one, as 25%",
        buddies_);
  }
  if (Status same = SameModel(reader.header(), other.header()); !same.ok()) {
    return std::move(same).WithContext(buddies_);
  }
  TROUPE_ASSIGN_OR_RETURN(options.material.buddies, LearnBuddies(other, ~std::uint64_t{0}));
  if (other.damage().any()) Remark("warning: {}: {}\n", buddies_, ToString(other.damage()));
  return OkStatus();
}

}  // namespace troupe
