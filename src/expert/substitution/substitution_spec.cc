#include "expert/substitution/substitution_spec.h"

#include <array>

#include "expert/substitution/cache_bias.h"
#include "expert/substitution/drop_slots.h"
#include "expert/substitution/link_options.h"
#include "expert/substitution/low_bit_copy.h"
#include "expert/substitution/resident_substitute.h"
#include "expert/substitution/reunite.h"
#include "expert/substitution/smoe_router.h"

namespace troupe {
namespace {

using Made = Result<std::unique_ptr<SubstitutionPolicy>>;
constexpr double kAnySeed = 4294967295.0;

// A policy of the type, once its options have been read without a fault.
template <typename Policy>
Made Make(const LinkOptions& read, const typename Policy::Options& options) {
  TROUPE_RETURN_IF_ERROR(read.Finish());
  return std::unique_ptr<SubstitutionPolicy>(std::make_unique<Policy>(options));
}

Made MakeSmoe(LinkOptions& read, const SubstitutionMaterial&) {
  return Make<SmoeRouter>(read, {.alpha = read.Number("alpha", SmoeRouter::Options{}.alpha, 0, 1)});
}

Status ReadGates(LinkOptions& read, const SubstitutionMaterial& material,
                 SubstitutionGates::Options& gates) {
  if (read.Is("tau", "layers")) {
    if (material.tau_by_layer.empty()) {
      return InvalidArgument("substitution {}: tau=layers found, but no calibration's values",
                             read.name());
    }
    gates.tau_by_layer = material.tau_by_layer;
  } else {
    gates.tau = read.Number("tau", gates.tau, -1, 1);
  }
  gates.temperature = read.Number("temperature", gates.temperature, 0.01, 100);
  gates.gamma = read.Number("gamma", gates.gamma, 0, 2);
  const bool by_share = read.Has("beta");
  gates.beta = read.Number("beta", gates.beta, 0, 2);
  gates.budget = read.Whole("budget", gates.budget, 0, 1 << 16);
  if (by_share && gates.budget > 0) {
    return InvalidArgument("substitution {}: beta and budget found, expected one of them",
                           read.name());
  }
  return OkStatus();
}

Made MakeBuddies(LinkOptions& read, const SubstitutionMaterial& material) {
  Buddies::Options options;
  TROUPE_RETURN_IF_ERROR(ReadGates(read, material, options.gates));
  options.rho = read.WholeOrAll("rho", options.rho);
  options.rank = read.Whole("rank", options.rank, 0, 1024);
  options.eta = read.Number("eta", options.eta, 0, 1000);
  options.best_first = read.Flag("best-first", options.best_first);
  TROUPE_RETURN_IF_ERROR(read.Finish());
  if (material.buddies == nullptr) {
    return Error(Code::kFailedPrecondition,
                 "substitution buddies: this model has no buddy lists; calibration makes them");
  }
  return std::unique_ptr<SubstitutionPolicy>(
      std::make_unique<Buddies>(material.buddies, std::move(options)));
}

Made MakeBestLive(LinkOptions& read, const SubstitutionMaterial& material) {
  BestLiveScore::Options options;
  TROUPE_RETURN_IF_ERROR(ReadGates(read, material, options.gates));
  options.most_share = read.Number("most-share", options.most_share, 0, 1);
  options.rho = read.WholeOrAll("rho", options.rho);
  return Make<BestLiveScore>(read, options);
}

Made MakeRandom(LinkOptions& read, const SubstitutionMaterial& material) {
  RandomResident::Options options;
  TROUPE_RETURN_IF_ERROR(ReadGates(read, material, options.gates));
  options.most_share = read.Number("most-share", options.most_share, 0, 1);
  options.rho = read.WholeOrAll("rho", options.rho);
  options.seed = static_cast<std::uint64_t>(
      read.Number("seed", static_cast<double>(options.seed), 0, kAnySeed));
  return Make<RandomResident>(read, options);
}

Made MakeDrop(LinkOptions& read, const SubstitutionMaterial& material) {
  DropMissing::Options options;
  TROUPE_RETURN_IF_ERROR(ReadGates(read, material, options.gates));
  if (read.Flag("renormalise", false)) options.weight = DroppedWeight::kShared;
  options.most_share = read.Number("most-share", options.most_share, 0, 1);
  options.rho = read.WholeOrAll("rho", options.rho);
  return Make<DropMissing>(read, options);
}

Made MakeTop(LinkOptions& read, const SubstitutionMaterial& material) {
  SmallerTopK::Options options;
  TROUPE_RETURN_IF_ERROR(ReadGates(read, material, options.gates));
  options.keep = read.Whole("keep", options.keep, 1, 1024);
  options.most_share = read.Number("most-share", options.most_share, 0, 1);
  return Make<SmallerTopK>(read, options);
}

Made MakeBias(LinkOptions& read, const SubstitutionMaterial&) {
  CacheBias::Options options;
  options.bonus = read.Number("bonus", options.bonus, 0, 1);
  options.rho = read.WholeOrAll("rho", options.rho);
  return Make<CacheBias>(read, options);
}

Made MakeLowBit(LinkOptions& read, const SubstitutionMaterial&) {
  LowBitCopy::Options options;
  options.most_share = read.Number("most-share", options.most_share, 0, 1);
  return Make<LowBitCopy>(read, options);
}

Made MakeReunite(LinkOptions& read, const SubstitutionMaterial&) {
  TROUPE_RETURN_IF_ERROR(read.Finish());
  return std::unique_ptr<SubstitutionPolicy>(std::make_unique<Reunite>());
}

struct Entry {
  std::string_view name;
  Made (*make)(LinkOptions&, const SubstitutionMaterial&);
};

constexpr std::array<Entry, 9> kPolicies = {{
    {"smoe", MakeSmoe},
    {"buddies", MakeBuddies},
    {"low-bit", MakeLowBit},
    {"drop", MakeDrop},
    {"bias", MakeBias},
    {"best-live", MakeBestLive},
    {"random", MakeRandom},
    {"top", MakeTop},
    {"reunite", MakeReunite},
}};

Made MakePolicy(std::string_view link, const SubstitutionMaterial& material) {
  TROUPE_ASSIGN_OR_RETURN(LinkOptions options, LinkOptions::Read(link));
  std::string names;
  for (const Entry& entry : kPolicies) {
    if (entry.name == options.name()) return entry.make(options, material);
    names += names.empty() ? "" : ", ";
    names += entry.name;
  }
  return InvalidArgument(
      "'{}' is no substitution policy, expected exact or some of {} with + between", options.name(),
      names);
}

}  // namespace

Result<SubstitutionChain> ParseSubstitution(std::string_view text,
                                            const SubstitutionMaterial& material,
                                            const SubstitutionLimits& limits) {
  std::vector<std::unique_ptr<SubstitutionPolicy>> links;
  if (text == "exact") return SubstitutionChain(std::move(links), limits);
  for (std::size_t at = 0; at != std::string_view::npos;) {
    const std::size_t end = text.find('+', at);
    TROUPE_ASSIGN_OR_RETURN(auto link, MakePolicy(text.substr(at, end - at), material));
    links.push_back(std::move(link));
    at = end == std::string_view::npos ? end : end + 1;
  }
  return SubstitutionChain(std::move(links), limits);
}

bool NeedsBuddies(std::string_view text) {
  for (std::size_t at = 0; at != std::string_view::npos;) {
    const std::size_t end = text.find('+', at);
    const std::string_view link = text.substr(at, end - at);
    if (link.substr(0, link.find(':')) == "buddies") return true;
    if (link.find(":tau=layers") != std::string_view::npos) return true;
    at = end == std::string_view::npos ? end : end + 1;
  }
  return false;
}

}  // namespace troupe
