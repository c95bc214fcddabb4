#include "troupe/split_flags.h"

#include <cstdlib>
#include <utility>

#include "troupe/key_file.h"

namespace troupe {

void SplitFlags::AddTo(Options& options) {
  options.Heading("End and cloud: a weak machine and a strong one that answer with one model");
  options
      .Add("--cloud", cloud_,
           "Have a strong machine with the same model, a `troupe serve --for-ends`, choose answers "
           "where that is sooner; without it all go on here. The bytes are the same")
      .Type("URL");
  options
      .Add("--cloud-key", key_file_,
           "The key to ask it with, the first line of this file; or TROUPE_CLOUD_KEY in the "
           "environment")
      .Type("FILE")
      .Needs("--cloud");
  options.AddFlag("--cloud-insecure", insecure_,
                  "Accept any certificate of the cloud: also one it signed itself");
  options
      .Add("--place", rule_,
           "Where answers are chosen (auto): where they are expected to end sooner; always in the "
           "cloud, at the end, or in the cloud while this machine guesses ahead (drafts), as long "
           "as there is a cloud; or by EC2MoE's rule")
      .OneOf(PlaceRuleNames())
      .Type("RULE");
  options
      .Add("--place-beta", route_aware_.beta,
           "Of route-aware: computing for each second of the link from which on an answer stays at "
           "the end (1)")
      .Between(0.0, 1e9)
      .Type("X");
  options
      .Add("--place-end-s", route_aware_.end_seconds,
           "Of route-aware: the work that the end may have at a time (2)")
      .Between(0.0, 1e9)
      .Type("SECONDS");
  options
      .Add(
          "--most-experts", most_experts_percent_,
          "Percent of the model's experts that the end keeps in memory at most, unless --memory or "
          "--slots say how many (40); `troupe device` shows what sets the limit")
      .Between(0.0, 100.0)
      .Type("PERCENT");
  options.AddFlag("--explain-places", explain_, "Say of each answer where it begins, and why");
  options.AddFlag("--for-ends", for_ends_,
                  "Choose answers for weak machines that name this one as their --cloud");
}

Status SplitFlags::CheckUsage() const {
  if (has_cloud()) return ParseHttpUrl(cloud_).status();
  const SplitFlags none;
  const std::pair<const char*, bool> given[] = {
      {"--cloud-insecure", insecure_},
      {"--place", rule_ != none.rule_},
      {"--place-beta", route_aware_.beta != none.route_aware_.beta},
      {"--place-end-s", route_aware_.end_seconds != none.route_aware_.end_seconds},
      {"--most-experts", most_experts_percent_ != none.most_experts_percent_},
      {"--explain-places", explain_}};
  for (const auto& [option, is_given] : given) {
    if (is_given) return InvalidArgument("{} needs --cloud", option);
  }
  return OkStatus();
}

Result<EndOptions> SplitFlags::Read() const {
  EndOptions options{.any_certificate = insecure_,
                     .rule = rule_,
                     .route_aware = route_aware_,
                     .proof = {},
                     .explain = explain_};
  TROUPE_ASSIGN_OR_RETURN(options.cloud.url, ParseHttpUrl(cloud_));
  if (!key_file_.empty()) {
    TROUPE_ASSIGN_OR_RETURN(const std::vector<std::string> keys, ReadKeys(key_file_));
    options.cloud.key = keys.front();
  } else if (const char* const key = std::getenv("TROUPE_CLOUD_KEY"); key != nullptr) {
    options.cloud.key = key;
  }
  return options;
}

}  // namespace troupe
