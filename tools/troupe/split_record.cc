#include "troupe/split_record.h"

#include <optional>
#include <string>
#include <utility>

namespace troupe {

namespace {

Json RecordOf(const CutState& cuts) {
  Json before = Json::Object();
  for (const auto& [layer, rows] : cuts.counts.rows_before) before[std::to_string(layer)] = rows;
  return {{"answered", cuts.counts.answered},
          {"failed", cuts.counts.failed},
          {"rows", cuts.counts.rows},
          {"rows_before", std::move(before)},
          {"lossy_rows", cuts.counts.lossy_rows},
          {"answers", cuts.counts.went_on},
          {"keys_bytes", cuts.counts.keys_bytes},
          {"seconds", cuts.seconds},
          {"busy_s", Json{{"end", cuts.counts.end.seconds()},
                          {"link", cuts.counts.link.seconds()},
                          {"cloud", cuts.counts.cloud.seconds()}}}};
}

}  // namespace

Json RecordOf(const EndState& state) {
  const auto token = [](const std::optional<PlaceCosts>& costs) {
    return costs ? Json(costs->token_seconds) : Json();
  };
  const auto of = [](const auto& sums, Side side) { return sums[static_cast<std::size_t>(side)]; };
  Json record = {{"cloud", ToString(state.cloud)},
                 {"answers_now", state.under_way},
                 {"tokens", Json{{"end", of(state.flow.tokens, Side::kEnd)},
                                 {"cloud", of(state.flow.tokens, Side::kCloud)}}},
                 {"taken_over", Json{{"end", of(state.flow.taken_over, Side::kEnd)},
                                     {"cloud", of(state.flow.taken_over, Side::kCloud)}}},
                 {"moved", Json{{"end", of(state.flow.moved, Side::kEnd)},
                                {"cloud", of(state.flow.moved, Side::kCloud)}}},
                 {"bytes", Json{{"sent", state.bytes_sent}, {"received", state.bytes_received}}},
                 {"round_trip_s", state.round_trip_seconds},
                 {"token_s", Json{{"end", token(state.end)}, {"cloud", token(state.cloud_costs)}}},
                 {"drafts", Json{{"guessed", state.drafts.guessed},
                                 {"late", state.drafts.late},
                                 {"checked", state.drafts.checked},
                                 {"right", state.drafts.right},
                                 {"ahead", state.pace.ahead}}}};
  if (state.cuts) record["cuts"] = RecordOf(*state.cuts);
  return record;
}

}  // namespace troupe
