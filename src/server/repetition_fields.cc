#include "server/repetition_fields.h"

#include <fmt/core.h>

#include <string>
#include <vector>

#include "server/sampling_fields.h"

namespace troupe {
namespace {

constexpr double kMostFactor = 1e6;
constexpr std::uint64_t kMostLookedAt = 1 << 20;
constexpr std::size_t kMostBreakers = 64, kMostBreakerBytes = 64;

std::vector<std::string> BreakersIn(const JsonValue& list) {
  if (!list.IsArray() || list.size() == 0 || list.size() > kMostBreakers) {
    list.Fail(fmt::format("an array of 1 to {} texts", kMostBreakers));
  }
  std::vector<std::string> breakers;
  for (std::size_t i = 0; i < list.size(); ++i) {
    std::string text = list.At(i).String();
    if (text.empty() || text.size() > kMostBreakerBytes) {
      list.At(i).Fail(fmt::format("a text of 1 to {} bytes", kMostBreakerBytes));
    }
    breakers.push_back(std::move(text));
  }
  return breakers;
}

void ReadDry(const JsonValue& body, DryOptions& dry) {
  if (Says(body, "dry_multiplier")) {
    dry.multiplier = body.At("dry_multiplier").Number(0, kMostFactor);
  }
  if (Says(body, "dry_base")) dry.base = body.At("dry_base").Number(1, kMostFactor);
  if (Says(body, "dry_allowed_length")) {
    dry.allowed_length =
        static_cast<std::uint32_t>(body.At("dry_allowed_length").Count(1, kMostLookedAt));
  }
  if (Says(body, "dry_sequence_breakers")) {
    dry.breakers = BreakersIn(body.At("dry_sequence_breakers"));
  }
  if (!Says(body, "dry_penalty_last_n")) return;
  constexpr std::uint64_t kAll = kMostLookedAt + 1;
  const std::uint64_t last = CountOrNoLimit(body.At("dry_penalty_last_n"), kMostLookedAt, kAll);
  if (last == 0) dry.multiplier = 0;
  dry.window = last == kAll ? 0 : static_cast<std::uint32_t>(last);
}

}  // namespace

void ReadRepetition(const JsonValue& body, Sampling& sampling) {
  ReadDry(body, sampling.dry);
  XtcOptions& xtc = sampling.xtc;
  if (Says(body, "xtc_probability")) xtc.probability = body.At("xtc_probability").Number(0, 1);
  if (Says(body, "xtc_threshold")) xtc.threshold = body.At("xtc_threshold").Number(0, 1);
}

}  // namespace troupe
