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

void SamplerFlags::AddTo(CLI::App& app) {
  const auto number = [&app](const char* name, double& value, const std::string& help) {
    app.add_option(name, value, fmt::format("{} ({})", help, value))->type_name("X");
  };
  number("--temperature", options_.temperature, "0 takes the most likely token; higher is wilder");
  app.add_option("--top-k", options_.top_k, "Choose among the K most likely; 0: all (40)")
      ->check(Between(0u, 1u << 30))
      ->type_name("K");
  number("--top-p", options_.top_p, "Choose among the likeliest that together reach X; 1: all");
  number("--min-p", options_.min_p, "Drop tokens less likely than X times the likeliest");
  number("--repeat-penalty", options_.repetition_penalty, "Make recent tokens less likely; 1: off");
  number("--frequency-penalty", options_.frequency_penalty, "Subtract per recent occurrence");
  number("--presence-penalty", options_.presence_penalty, "Subtract once for recent tokens");
  app.add_option("--penalty-window", options_.penalty_window, "Tokens that count as recent (64)")
      ->check(Between(0u, 1u << 30))
      ->type_name("N");
  app.add_option("--logit-bias", biases_, "Add to a token's logit: ID=NUMBER, ID=-inf bans it")
      ->type_name("ID=X");
  app.add_option("--seed", seed_, "Same seed, same text (another one each time)")
      ->check(Between(std::int64_t{0}, std::numeric_limits<std::int64_t>::max()))
      ->type_name("N");
}

Result<SamplerOptions> SamplerFlags::Options() const {
  SamplerOptions options = options_;
  options.seed = seed_ ? *seed_ : std::random_device()();
  for (const std::string& text : biases_) {
    TROUPE_ASSIGN_OR_RETURN(const auto bias, ParseBias(text));
    options.logit_bias[bias.first] = bias.second;
  }
  TROUPE_RETURN_IF_ERROR(options.Validate());
  return options;
}

}  // namespace troupe
