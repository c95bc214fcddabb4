#include "troupe/sampler_flags.h"

#include <charconv>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>

#include "troupe/options.h"

namespace troupe {
namespace {

Result<std::pair<TokenId, float>> ParseBias(const std::string& text) {
  const std::size_t equals = text.find('=');
  TokenId id = 0;
  float bias = 0;
  const auto bad = [&] {
    return InvalidArgument("'{}' is no logit bias; expected ID=NUMBER, as 306=-2.5 or 306=-inf",
                           text);
  };
  if (equals == std::string::npos) return bad();
  const char* const begin = text.data();
  const auto id_end = std::from_chars(begin, begin + equals, id);
  const auto bias_end = std::from_chars(begin + equals + 1, begin + text.size(), bias);
  if (id_end.ec != std::errc() || id_end.ptr != begin + equals || bias_end.ec != std::errc() ||
      bias_end.ptr != begin + text.size() || std::isnan(bias)) {
    return bad();
  }
  return std::pair(id, bias);
}

}  // namespace

void SamplerFlags::AddTo(Options& options) {
  const auto number = [&options](const char* name, double& value, const std::string& help) {
    options.Add(name, value, fmt::format("{} ({})", help, value)).Type("X");
  };
  number("--temperature", options_.temperature,
         "0 takes the most likely token; higher values are more random");
  options.Add("--top-k", options_.top_k, "Sample from the K most likely tokens; 0: all (40)")
      .Between(0u, 1u << 30)
      .Type("K");
  number("--top-p", options_.top_p,
         "Sample from the most likely tokens whose probabilities sum to X; 1: all");
  number("--min-p", options_.min_p, "Drop tokens less likely than X times the most likely one");
  number("--repeat-penalty", options_.repetition_penalty, "Make recent tokens less likely; 1: off");
  number("--frequency-penalty", options_.frequency_penalty, "Subtract X per recent occurrence");
  number("--presence-penalty", options_.presence_penalty, "Subtract X once from recent tokens");
  options.Add("--penalty-window", options_.penalty_window, "Number of tokens that are recent (64)")
      .Between(0u, 1u << 30)
      .Type("N");
  options.Add("--logit-bias", biases_, "Add X to a token's logit: ID=X; ID=-inf bans the token")
      .Type("ID=X");
  options
      .Add("-s,--seed", seed_, "Random seed: the same seed gives the same text; -1: any (random)")
      .Between(std::int64_t{-1}, std::numeric_limits<std::int64_t>::max())
      .Type("N");
  AddRepetition(options);
}

void SamplerFlags::AddRepetition(Options& options) {
  const auto number = [&options](const char* name, double& value, const std::string& help) {
    options.Add(name, value, fmt::format("{} ({})", help, value)).Type("X");
  };
  number("--dry-multiplier", options_.dry.multiplier,
         "Subtract X where a token would go on with a repetition (DRY), more the longer it is; 0: "
         "off");
  number("--dry-base", options_.dry.base,
         "Factor by which each further token of the repetition costs more");
  options
      .Add("--dry-allowed-length", options_.dry.allowed_length,
           "Length of a repetition from which on it costs (2)")
      .Between(1u, 1u << 20)
      .Type("N");
  options
      .Add("--dry-penalty-last-n", options_.dry.window,
           "Number of tokens that DRY looks back at; 0: all (0)")
      .Between(0u, 1u << 30)
      .Type("N");
  options
      .Add("--dry-sequence-breaker", options_.dry.breakers,
           "Text that no repetition goes across; may be repeated (line end, colon, quotes, *)")
      .Type("TEXT");
  number("--xtc-probability", options_.xtc.probability,
         "How often the likeliest tokens are left out (XTC); 0: never");
  number("--xtc-threshold", options_.xtc.threshold,
         "Of tokens at least so likely, leave out all but the least likely");
}

Result<Sampling> SamplerFlags::Sampler() const {
  Sampling options = options_;
  const std::int64_t seed = seed_.value_or(-1);
  options.seed = seed >= 0 ? static_cast<std::uint64_t>(seed) : std::random_device()();
  for (const std::string& text : biases_) {
    TROUPE_ASSIGN_OR_RETURN(const auto bias, ParseBias(text));
    options.logit_bias[bias.first] = bias.second;
  }
  TROUPE_RETURN_IF_ERROR(Validate(options));
  return options;
}

}  // namespace troupe
