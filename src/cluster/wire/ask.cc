#include "cluster/wire/ask.h"

#include <algorithm>
#include <functional>

#include "cluster/wire/frame_reader.h"
#include "cluster/wire/frame_writer.h"
#include "cluster/wire/wire_text.h"

namespace troupe {
namespace {

// Kind, form, layer, deadline, call, width, rows, experts, form of the answer and padding.
constexpr std::size_t kAskBytes = 1 + 1 + 2 + 4 + 8 + 4 + 2 + 2 + 4;

// Rising and below `rows`: a row that comes twice would be added twice.
void CheckIndices(FrameReader& in, std::span<const std::uint16_t> indices, std::size_t rows) {
  for (std::size_t i = 0; i < indices.size(); ++i) {
    if (indices[i] >= rows) in.Fail("row {} found, below {} expected", indices[i], rows);
    if (i > 0 && indices[i] <= indices[i - 1]) {
      in.Fail("row {} found, above {} expected", indices[i], indices[i - 1]);
    }
  }
}

std::size_t CountIndices(const PeerAsk& ask) {
  std::size_t indices = 0;
  for (const PeerAsk::Expert& expert : ask.experts) {
    TROUPE_CHECK(!expert.rows.empty() && expert.rows.back() < ask.rows.count);
    TROUPE_CHECK(std::ranges::adjacent_find(expert.rows, std::greater_equal()) ==
                 expert.rows.end());
    indices += expert.rows.size();
  }
  return indices;
}

}  // namespace

bool PeerAsk::Expert::operator==(const Expert& other) const {
  return expert == other.expert && std::ranges::equal(rows, other.rows);
}

std::string_view ToString(PeerAskRefused::Reason reason) {
  switch (reason) {
    case PeerAskRefused::Reason::kBusy:
      return "busy";
    case PeerAskRefused::Reason::kNotHeld:
      return "not held";
    case PeerAskRefused::Reason::kBad:
      return "bad";
    case PeerAskRefused::Reason::kStopping:
      return "stopping";
  }
  return "unknown";
}

std::string ToString(const PeerAsk& ask) {
  std::string experts;
  for (const PeerAsk::Expert& expert : ask.experts) {
    experts += fmt::format("{}{} ({} rows)", experts.empty() ? "" : ", ", expert.expert,
                           expert.rows.size());
  }
  return fmt::format("ask {}: layer {}, experts {}; {} rows of {} {}, answer in {}, deadline {} us",
                     ask.call, ask.layer, experts, ask.rows.count, ask.rows.width,
                     ToString(ask.rows.form), ToString(ask.answer), ask.deadline_micros);
}

std::string ToString(const PeerAskRefused& refused) {
  return fmt::format("ask {} refused: {}: {}", refused.call, ToString(refused.reason),
                     refused.text);
}

std::string ToString(const PeerCancel& cancel) { return fmt::format("cancel {}", cancel.call); }

RowFrame MakeFrame(const PeerAsk& ask) {
  CheckWidth(ask.rows.form, ask.rows.width);
  CheckWidth(ask.answer, ask.rows.width);
  TROUPE_CHECK(ask.rows.count >= 1 && ask.rows.count <= kMaxWireRows);
  TROUPE_CHECK(!ask.experts.empty() && ask.experts.size() <= kMaxWireRows);
  const std::size_t table =
      ask.experts.size() * sizeof(ExpertRows) + CountIndices(ask) * sizeof(std::uint16_t);
  const std::size_t rows_at = PaddedToFrame(kAskBytes + table);
  const std::size_t rows_bytes = ask.rows.count * ask.rows.row_bytes();
  FrameWriter out(PeerMessageKind::kAsk, rows_at + rows_bytes);
  out.Put(ask.rows.form);
  out.Put(ask.layer);
  out.Put(ask.deadline_micros);
  out.Put(ask.call);
  out.Put(ask.rows.width);
  out.Put(static_cast<std::uint16_t>(ask.rows.count));
  out.Put(static_cast<std::uint16_t>(ask.experts.size()));
  out.Put(ask.answer);
  out.PutPadding();
  for (const PeerAsk::Expert& expert : ask.experts) {
    out.Put(expert.expert);
    out.Put(static_cast<std::uint16_t>(expert.rows.size()));
  }
  for (const PeerAsk::Expert& expert : ask.experts) out.PutArray(expert.rows);
  out.PutPadding();
  TROUPE_CHECK(out.PutRoom(rows_bytes) == rows_at);
  return RowFrame(std::move(out).Take(), rows_at, ask.rows.row_bytes());
}

std::vector<std::byte> Encode(const PeerAsk& ask) {
  RowFrame frame = MakeFrame(ask);
  TROUPE_CHECK(ask.rows.bytes.size() == frame.rows().size());
  std::ranges::copy(ask.rows.bytes, frame.rows().begin());
  return std::move(frame).Take();
}

std::vector<std::byte> Encode(const PeerAskRefused& refused) {
  const std::string text = AsPeerText(refused.text);
  FrameWriter out(PeerMessageKind::kAskRefused, 2 + 8 + TextBytes(text));
  out.Put(refused.reason);
  out.Put(refused.call);
  out.PutText(text);
  return std::move(out).Take();
}

std::vector<std::byte> Encode(const PeerCancel& cancel) {
  FrameWriter out(PeerMessageKind::kCancel, 1 + 8);
  out.Put(cancel.call);
  return std::move(out).Take();
}

Result<PeerAsk> DecodePeerAsk(std::span<const std::byte> frame) {
  FrameReader in(PeerMessageKind::kAsk, frame);
  PeerAsk ask;
  const auto form = in.ReadEnum("form of rows", RowForm::kFloat, RowForm::kInt8);
  ask.layer = in.Read<std::uint16_t>("layer");
  ask.deadline_micros = in.Read<std::uint32_t>("deadline");
  ask.call = in.Read<std::uint64_t>("call");
  const std::uint32_t width = ReadWidth(in, form);
  const auto rows = in.Read<std::uint16_t>("number of rows");
  if (rows == 0) in.Fail("0 found, 1 to {} expected", kMaxWireRows);
  const auto experts = in.Read<std::uint16_t>("number of experts");
  if (experts == 0) in.Fail("0 found, 1 to {} expected", kMaxWireRows);
  ask.answer = in.ReadEnum("form of the answer", RowForm::kFloat, RowForm::kBf16);
  if (!TakesWidth(ask.answer, width)) {
    in.Fail("{} found, which rows of {} cannot have", ToString(ask.answer), width);
  }
  in.ReadPadding();
  const auto table = ReadExpertRows(in, experts);
  ask.experts.reserve(table.size());
  for (const ExpertRows& expert : table) {
    const auto indices = in.ReadArray<std::uint16_t>(expert.rows, "rows of an expert");
    CheckIndices(in, indices, rows);
    if (!in.ok()) break;
    ask.experts.push_back({expert.expert, indices});
  }
  in.ReadPadding();
  ask.rows = ReadRows(in, form, width, rows);
  TROUPE_RETURN_IF_ERROR(in.Finish());
  return ask;
}

Result<PeerAskRefused> DecodePeerAskRefused(std::span<const std::byte> frame) {
  using Reason = PeerAskRefused::Reason;
  FrameReader in(PeerMessageKind::kAskRefused, frame);
  PeerAskRefused refused;
  refused.reason = in.ReadEnum("reason", Reason::kBusy, Reason::kStopping);
  refused.call = in.Read<std::uint64_t>("call");
  refused.text = in.ReadText("text");
  TROUPE_RETURN_IF_ERROR(in.Finish());
  return refused;
}

Result<PeerCancel> DecodePeerCancel(std::span<const std::byte> frame) {
  FrameReader in(PeerMessageKind::kCancel, frame);
  const PeerCancel cancel{.call = in.Read<std::uint64_t>("call")};
  TROUPE_RETURN_IF_ERROR(in.Finish());
  return cancel;
}

}  // namespace troupe
