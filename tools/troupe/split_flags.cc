#include "troupe/split_flags.h"

#include <charconv>
#include <cstdlib>
#include <string>
#include <string_view>
#include <utility>

#include "expert/substitution/quality_limit.h"
#include "troupe/key_file.h"

namespace troupe {
namespace {

constexpr std::size_t kUsualOfEnd = 1024, kUsualOfCloud = 4096;
constexpr std::string_view kLayers = "layers:";

template <typename Number>
bool ReadNumber(std::string_view text, Number& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size();
}

// "int8", or "128:int8" with a rank, and "-rans" behind either.
Status ReadCode(std::string_view text, StateCode& code) {
  const std::size_t colon = text.find(':');
  const bool has_rank = colon != text.npos;
  std::optional<StateCode> read = StateCodeFrom(has_rank ? text.substr(colon + 1) : text);
  if (!read || (has_rank && (!ReadNumber(text.substr(0, colon), read->rank) || read->rank == 0))) {
    return InvalidArgument("'{}', expected floats, int8, int4, int4-rans or RANK:int8", text);
  }
  code = *read;
  return OkStatus();
}

}  // namespace

ServedModel::Quality QualityBehind(const CutOptions& cuts) {
  if (cuts.tokens == 0) return {};
  if (!cuts.by_link.empty() && cuts.most_loss) {
    const LossLimit limit{*cuts.most_loss};
    return {.lossiness = limit, .text = "cut prompts (at most " + ToString(limit) + ")"};
  }
  if (cuts.code.exact()) return {};
  const std::string rank = cuts.code.rank > 0 ? std::to_string(cuts.code.rank) + ":" : "";
  const std::string text = "cut prompts (" + rank + NameOf(cuts.code) + ")";
  // Nobody has measured what it loses here.
  return {.lossiness = Chain{text}, .text = text};
}

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
      .AddParsed(
          "--place", [this](const std::string& text) { return ReadPlace(text); },
          "Where answers are chosen (auto): where they are expected to end sooner; always in the "
          "cloud, at the end, or in the cloud while this machine guesses ahead (drafts), as long "
          "as there is a cloud; by EC2MoE's rule; or with the first N "
          "layers of the prompt here and the others in the cloud (layers:N)")
      .Suggest({"auto", "cloud", "end", "drafts", "layers:N", "route-aware"})
      .Type("RULE");
  options
      .Add("--cut-chunk", chunk_,
           "Tokens of a cut prompt that cross at a time (as many as is best): the cloud computes "
           "some while this machine computes the next ones")
      .Between(std::size_t{1}, std::size_t{4096})
      .Type("N");
  options
      .AddParsed(
          "--cut-code", [this](const std::string& text) { return ReadCode(text, cuts_.code); },
          "How rows of cut prompts cross: floats, exactly (the default); int8 or int4; or "
          "RANK:int8 "
          "of what `troupe calibrate --cut` has fitted, on both sides; each with -rans for an "
          "entropy coder behind it (int4-rans), which loses nothing more. Requests that want "
          "exactness cross exactly")
      .Suggest({"floats", "int8", "int4", "int4-rans"})
      .Type("CODE");
  options
      .Add("--cut-loss", cut_loss_percent_,
           "Of perplexity, that such rows may lose: where the link is slow they cross by the "
           "shortest code that `troupe calibrate --cut` has measured to keep to this, else exactly")
      .Between(0.0, 100.0)
      .Excludes("--cut-code")
      .Type("PERCENT");
  options
      .Add("--cut-tokens", cut_tokens_,
           "Tokens of prompts that are cut at a time (1024 of an end, 4096 of a cloud; 0: none), "
           "for which there is memory beside that of other answers")
      .Between(std::size_t{0}, std::size_t{1} << 20)
      .Type("N");
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
  options.AddFlag(
      "--explain-places", explain_,
      "Say of each answer where it begins and goes on, and why; --explain does as well");
  options.AddFlag("--for-ends", for_ends_,
                  "Choose answers for weak machines that name this one as their --cloud");
}

Status SplitFlags::CheckUsage() const {
  if (has_cloud()) {
    TROUPE_RETURN_IF_ERROR(ParseHttpUrl(cloud_).status());
    return CheckPlace();
  }
  if (cut_tokens_ && !for_ends_) return InvalidArgument("--cut-tokens needs --cloud or --for-ends");
  const SplitFlags none;
  const std::pair<const char*, bool> given[] = {
      {"--cloud-insecure", insecure_},
      {"--place", rule_ != none.rule_},
      {"--cut-chunk", chunk_.has_value()},
      {"--cut-code", cuts_.code != none.cuts_.code},
      {"--cut-loss", cut_loss_percent_.has_value()},
      {"--place-beta", route_aware_.beta != none.route_aware_.beta},
      {"--place-end-s", route_aware_.end_seconds != none.route_aware_.end_seconds},
      {"--most-experts", most_experts_percent_ != none.most_experts_percent_},
      {"--explain-places", explain_}};
  for (const auto& [option, is_given] : given) {
    if (is_given) return InvalidArgument("{} needs --cloud", option);
  }
  return OkStatus();
}

Status SplitFlags::CheckPlace() const {
  const SplitFlags none;
  const bool cuts_none = cut_tokens_ == std::size_t{0};
  if (cuts_none && rule_ == "layers") {
    return InvalidArgument("--place layers:N needs tokens: --cut-tokens 0 cuts no prompt");
  }
  const std::pair<const char*, bool> of_cuts[] = {{"--cut-chunk", chunk_.has_value()},
                                                  {"--cut-code", cuts_.code != none.cuts_.code},
                                                  {"--cut-loss", cut_loss_percent_.has_value()}};
  for (const auto& [option, is_given] : of_cuts) {
    if (!is_given || cuts().tokens > 0) continue;
    if (cuts_none) return InvalidArgument("{} needs tokens: --cut-tokens 0 cuts no prompt", option);
    return InvalidArgument("{} needs --place auto or layers:N, where prompts are cut", option);
  }
  const std::pair<const char*, bool> of_rule[] = {
      {"--place-beta", route_aware_.beta != none.route_aware_.beta},
      {"--place-end-s", route_aware_.end_seconds != none.route_aware_.end_seconds}};
  for (const auto& [option, is_given] : of_rule) {
    if (is_given && rule_ != "route-aware") {
      return InvalidArgument("{} needs --place route-aware", option);
    }
  }
  return OkStatus();
}

Status SplitFlags::ReadPlace(const std::string& text) {
  if (!text.starts_with(kLayers)) {
    if (text == "layers") return InvalidArgument("'layers', expected layers:N");
    TROUPE_RETURN_IF_ERROR(MakePlaceRule(text).status());
    rule_ = text;
    cuts_.layer.reset();
    return OkStatus();
  }
  std::uint32_t layer = 0;
  if (!ReadNumber(std::string_view(text).substr(kLayers.size()), layer)) {
    return InvalidArgument("'{}', expected layers:N", text);
  }
  rule_ = "layers";
  cuts_.layer = layer;
  return OkStatus();
}

CutOptions SplitFlags::cuts() const {
  CutOptions cuts = cuts_;
  const bool may_cut = has_cloud() && (rule_ == "auto" || rule_ == "layers");
  cuts.tokens = may_cut ? cut_tokens_.value_or(kUsualOfEnd) : 0;
  cuts.chunk = chunk_;
  return cuts;
}

std::size_t SplitFlags::cut_tokens_of_cloud() const {
  return for_ends_ ? cut_tokens_.value_or(kUsualOfCloud) : 0;
}

Result<EndOptions> SplitFlags::Read() const {
  EndOptions options{.any_certificate = insecure_,
                     .rule = rule_,
                     .route_aware = route_aware_,
                     .proof = {},
                     .explain = explain_,
                     .cuts = cuts()};
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
