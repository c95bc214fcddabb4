#include "cluster/wire/answer.h"

#include <algorithm>

#include "cluster/wire/frame_reader.h"
#include "cluster/wire/frame_writer.h"

namespace troupe {
namespace {

// Kind, last, experts, form and padding, width, call, waited, computed, waiting.
constexpr std::size_t kAnswerBytes = 1 + 1 + 2 + 4 + 4 + 8 + 4 + 4 + 4;
static_assert(kAnswerBytes % kFrameAlignment == 0);

std::size_t CountRows(std::span<const ExpertRows> experts) {
  std::size_t rows = 0;
  for (const ExpertRows& expert : experts) rows += expert.rows;
  return rows;
}

}  // namespace

std::string ToString(const PeerAnswer& answer) {
  std::string experts;
  for (const ExpertRows& expert : answer.experts) {
    experts +=
        fmt::format("{}{} ({} rows)", experts.empty() ? "" : ", ", expert.expert, expert.rows);
  }
  return fmt::format("answer {}{}: experts {}; waited {} us, computed {} us, {} waiting",
                     answer.call, answer.last ? ", last" : "", experts.empty() ? "none" : experts,
                     answer.waited_micros, answer.computed_micros, answer.waiting);
}

RowFrame MakeFrame(const PeerAnswer& answer) {
  CheckWidth(answer.rows.form, answer.rows.width);
  TROUPE_CHECK(answer.rows.count == CountRows(answer.experts));
  TROUPE_CHECK(answer.experts.size() <= kMaxWireRows && (answer.last || !answer.experts.empty()));
  const std::size_t rows_at = kAnswerBytes + answer.experts.size() * sizeof(ExpertRows);
  const std::size_t rows_bytes = answer.rows.count * answer.rows.row_bytes();
  FrameWriter out(PeerMessageKind::kAnswer, rows_at + rows_bytes);
  out.Put(static_cast<std::uint8_t>(answer.last));
  out.Put(static_cast<std::uint16_t>(answer.experts.size()));
  out.Put(answer.rows.form);
  out.PutPadding();
  out.Put(answer.rows.width);
  out.Put(answer.call);
  out.Put(answer.waited_micros);
  out.Put(answer.computed_micros);
  out.Put(answer.waiting);
  out.PutArray(std::span(answer.experts));
  TROUPE_CHECK(out.PutRoom(rows_bytes) == rows_at);
  return RowFrame(std::move(out).Take(), rows_at, answer.rows.row_bytes());
}

std::vector<std::byte> Encode(const PeerAnswer& answer) {
  RowFrame frame = MakeFrame(answer);
  TROUPE_CHECK(answer.rows.bytes.size() == frame.rows().size());
  std::ranges::copy(answer.rows.bytes, frame.rows().begin());
  return std::move(frame).Take();
}

Result<PeerAnswer> DecodePeerAnswer(std::span<const std::byte> frame) {
  FrameReader in(PeerMessageKind::kAnswer, frame);
  PeerAnswer answer;
  answer.last = in.ReadFlag("last");
  const auto experts = in.Read<std::uint16_t>("number of experts");
  if (experts == 0 && !answer.last)
    in.Fail("0 found in a message that is not the last, 1 expected");
  const auto form = in.ReadEnum("form of rows", RowForm::kFloat, RowForm::kBf16);
  in.ReadPadding();
  const std::uint32_t width = ReadWidth(in, form);
  answer.call = in.Read<std::uint64_t>("call");
  answer.waited_micros = in.Read<std::uint32_t>("time waited");
  answer.computed_micros = in.Read<std::uint32_t>("time computed");
  answer.waiting = in.Read<std::uint32_t>("calls waiting");
  const auto table = ReadExpertRows(in, experts);
  answer.experts.assign(table.begin(), table.end());
  answer.rows = ReadRows(in, form, width, CountRows(table));
  TROUPE_RETURN_IF_ERROR(in.Finish());
  return answer;
}

}  // namespace troupe
