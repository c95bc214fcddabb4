#include "split/flow/place_costs.h"

#include <fmt/format.h>

#include <algorithm>

namespace troupe {
namespace {

constexpr double kNewest = 0.25;
// By how much one answer may say that what a place tells is wrong: others may have come since.
constexpr double kMostWrong = 4;
// Of an answer, as its place said: tokens of a shorter one may all have come together, or with a
// pause of somebody else between them.
constexpr double kEnoughSeconds = 0.25;

std::string Milliseconds(double seconds) {
  constexpr double kFew = 10;
  const double ms = seconds * 1e3;
  return ms < kFew ? fmt::format("{:.1f} ms", ms) : fmt::format("{:.0f} ms", ms);
}

}  // namespace

std::string CostOfBeingAlone(const std::optional<PlaceCosts>& end,
                             const std::optional<PlaceCosts>& cloud) {
  if (!end || !cloud) return {};
  return fmt::format("{} a token here in place of {}", Milliseconds(end->token_seconds),
                     Milliseconds(cloud->token_seconds));
}

void PlaceMeter::Mean::Add(double value) {
  value_ = value_ ? *value_ + kNewest * (value - *value_) : value;
}

void PlaceMeter::OnAnswer(const MeasuredAnswer& answer) {
  if (answer.link_seconds > 0) link_.Add(answer.link_seconds);
  if (answer.tokens == 0) return;
  const double token = answer.token_seconds / static_cast<double>(answer.tokens);
  token_.Add(token);
  const double told = answer.told_token_seconds;
  if (told * static_cast<double>(answer.tokens) < kEnoughSeconds) return;
  of_told_.Add(std::clamp(token / told, 1 / kMostWrong, kMostWrong));
}

void PlaceMeter::OnTold(double read_seconds, double token_seconds) {
  if (read_seconds > 0) read_seconds_ = read_seconds;
  if (token_seconds > 0) told_token_ = token_seconds;
}

std::optional<PlaceCosts> PlaceMeter::Costs(double wait_seconds) const {
  const double token = told_token_ > 0 ? told_token_ * of_told_.Or(1) : token_.Or(0);
  if (read_seconds_ <= 0 || token <= 0) return std::nullopt;
  return PlaceCosts{.wait_seconds = wait_seconds,
                    .link_seconds = link_.Or(0),
                    .read_seconds = read_seconds_,
                    .token_seconds = token};
}

}  // namespace troupe
