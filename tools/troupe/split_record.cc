#include "troupe/split_record.h"

namespace troupe {

Json RecordOf(const EndState& state) {
  const auto of = [](const auto& sums, Side side) { return sums[static_cast<std::size_t>(side)]; };
  return {{"cloud", ToString(state.cloud)},
          {"answers_now", state.under_way},
          {"tokens", Json{{"end", of(state.flow.tokens, Side::kEnd)},
                          {"cloud", of(state.flow.tokens, Side::kCloud)}}},
          {"taken_over", Json{{"end", of(state.flow.taken_over, Side::kEnd)},
                              {"cloud", of(state.flow.taken_over, Side::kCloud)}}},
          {"bytes", Json{{"sent", state.bytes_sent}, {"received", state.bytes_received}}},
          {"round_trip_s", state.round_trip_seconds},
          {"drafts", Json{{"guessed", state.drafts.guessed},
                          {"late", state.drafts.late},
                          {"checked", state.drafts.checked},
                          {"right", state.drafts.right},
                          {"ahead", state.pace.ahead}}}};
}

}  // namespace troupe
