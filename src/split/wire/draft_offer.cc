#include "split/wire/draft_offer.h"

#include <fmt/format.h>

#include <limits>

#include "base/json.h"
#include "split/wire/token_ids.h"

namespace troupe {
namespace {

constexpr std::uint64_t kMostNumber = std::numeric_limits<std::uint64_t>::max();
constexpr std::uint64_t kMostPosition = 1 << 30;

}  // namespace

std::string Encode(const DraftOffer& offer) {
  return Json{{"drafts", offer.drafts},
              {"number", offer.number},
              {"from", offer.from},
              {"draft", offer.tokens}}
      .Dump();
}

DraftOffer ReadDraftOffer(const JsonValue& json) {
  DraftOffer offer{.drafts = json.At("drafts").Count(0, kMostNumber),
                   .number = json.At("number").Count(0, kMostNumber),
                   .from = json.At("from").Count(0, kMostPosition),
                   .tokens = ReadTokenIds(json.At("draft"))};
  if (offer.tokens.size() > kMostDraftTokens) {
    json.At("draft").Fail(fmt::format("at most {} tokens", kMostDraftTokens));
  }
  return offer;
}

std::string Encode(const DraftVerdict& verdict) {
  return Json{{"checked", verdict.checked}, {"right", verdict.right}}.Dump();
}

Result<DraftVerdict> DecodeDraftVerdict(std::string_view text) {
  return ReadJson<DraftVerdict>("the cloud's word on drafts", text, [](const JsonValue& json) {
    return DraftVerdict{.checked = json.At("checked").Count(0, kMostNumber),
                        .right = json.At("right").Count(0, kMostNumber)};
  });
}

}  // namespace troupe
