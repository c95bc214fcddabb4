#include "split/flow/place_costs.h"

#include <fmt/format.h>

namespace troupe {
namespace {

constexpr double kNewest = 0.25;

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
  value_ = is_measured_ ? *value_ + kNewest * (value - *value_) : value;
  is_measured_ = true;
}

void PlaceMeter::Mean::Expect(double value) {
  if (!is_measured_ && value > 0) value_ = value;
}

void PlaceMeter::OnAnswer(const MeasuredAnswer& answer) {
  if (answer.tokens > 0) token_.Add(answer.token_seconds / static_cast<double>(answer.tokens));
  if (answer.link_seconds > 0) link_.Add(answer.link_seconds);
}

void PlaceMeter::OnTold(double read_seconds, double token_seconds) {
  if (read_seconds > 0) read_seconds_ = read_seconds;
  token_.Expect(token_seconds);
}

std::optional<PlaceCosts> PlaceMeter::Costs(double wait_seconds) const {
  if (read_seconds_ <= 0 || !token_.value()) return std::nullopt;
  return PlaceCosts{.wait_seconds = wait_seconds,
                    .link_seconds = link_.value().value_or(0),
                    .read_seconds = read_seconds_,
                    .token_seconds = *token_.value()};
}

}  // namespace troupe
