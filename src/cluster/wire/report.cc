#include "cluster/wire/report.h"

#include <algorithm>

#include "cluster/wire/frame_reader.h"
#include "cluster/wire/frame_writer.h"

namespace troupe {
namespace {

// How the activations lie in the frame: the count of each expert, or its index and count for those
// that were activated. Written is the shorter one.
enum class CountForm : std::uint8_t { kDense = 0, kSparse = 1 };

struct CellCount {
  std::uint32_t cell = 0;
  std::uint32_t count = 0;
};

// Kind, seconds, grid, memory, disk, an expert, a row, a remote one, form of counts, links.
constexpr std::size_t kReportBytes = 1 + 8 + kGridBytes + 8 + 8 + 8 + 8 + 8 + 1 + 2;
constexpr std::size_t kLinkBytes = kTextLengthBytes + 1 + 8 + 8;  // at least

std::size_t Activated(const PeerReport& report) {
  return report.activations.size() -
         static_cast<std::size_t>(std::ranges::count(report.activations, 0u));
}

std::size_t DenseBytes(std::size_t cells) { return cells * sizeof(std::uint32_t); }
std::size_t SparseBytes(std::size_t activated) {
  return sizeof(std::uint32_t) + activated * sizeof(CellCount);
}

std::vector<std::uint32_t> ReadDense(FrameReader& in, std::size_t cells) {
  const auto bytes = in.ReadBytes(DenseBytes(cells), "activations");
  if (!in.ok()) return {};
  std::vector<std::uint32_t> counts(cells);
  std::memcpy(counts.data(), bytes.data(), bytes.size());
  return counts;
}

std::vector<std::uint32_t> ReadSparse(FrameReader& in, std::size_t cells) {
  const auto activated = in.ReadCount<std::uint32_t>("experts activated", sizeof(CellCount));
  if (!in.ok()) return {};
  std::vector<std::uint32_t> counts(cells);
  std::size_t least = 0;
  for (std::uint32_t i = 0; i < activated; ++i) {
    const auto cell = in.Read<std::uint32_t>("index of an expert");
    if (cell < least || cell >= cells) {
      in.Fail("{} found, {} to {} expected", cell, least, cells - 1);
      return {};
    }
    counts[cell] = in.Read<std::uint32_t>("activations of an expert");
    if (counts[cell] == 0) in.Fail("0 found, 1 or more expected");
    least = std::size_t{cell} + 1;
  }
  return counts;
}

std::vector<NodeMeasures::Link> ReadLinks(FrameReader& in) {
  std::vector<NodeMeasures::Link> links(in.ReadCount<std::uint16_t>("links", kLinkBytes));
  for (NodeMeasures::Link& link : links) {
    link.peer = in.ReadName("peer");
    link.round_trip_seconds = in.ReadMeasure("round trip");
    link.bytes_per_second = in.ReadMeasure("speed of the link");
  }
  return links;
}

void PutCounts(FrameWriter& out, const std::vector<std::uint32_t>& counts, CountForm form,
               std::size_t activated) {
  if (form == CountForm::kDense) return out.PutArray(std::span(counts));
  out.Put(static_cast<std::uint32_t>(activated));
  for (std::size_t cell = 0; cell < counts.size(); ++cell) {
    if (counts[cell] == 0) continue;
    out.Put(static_cast<std::uint32_t>(cell));
    out.Put(counts[cell]);
  }
}

}  // namespace

std::string ToString(const PeerReport& report) {
  std::string links;
  for (const NodeMeasures::Link& link : report.measured.links) {
    links += fmt::format("; {}: {:.6f} s, {:.0f} bytes/s", link.peer, link.round_trip_seconds,
                         link.bytes_per_second);
  }
  return fmt::format(
      "report of {:.1f} s: {} experts activated of {}, {} for experts, disk {:.0f} bytes/s, {:.9f} "
      "s an expert, {:.9f} s a row, {:.9f} s a remote row more{}",
      report.seconds, Activated(report), ToString(report.grid), ToString(report.expert_memory),
      report.measured.disk_bytes_per_second, report.measured.seconds_an_expert,
      report.measured.seconds_a_row, report.measured.seconds_a_remote_row, links);
}

std::vector<std::byte> Encode(const PeerReport& report) {
  const std::size_t cells = report.grid.Count(), activated = Activated(report);
  TROUPE_CHECK(report.activations.size() == cells && report.measured.links.size() <= 65535);
  const CountForm form =
      SparseBytes(activated) < DenseBytes(cells) ? CountForm::kSparse : CountForm::kDense;
  std::size_t bytes = kReportBytes + std::min(SparseBytes(activated), DenseBytes(cells));
  for (const NodeMeasures::Link& link : report.measured.links)
    bytes += TextBytes(link.peer) + 8 + 8;
  FrameWriter out(PeerMessageKind::kReport, bytes);
  out.PutMeasure(report.seconds);
  out.Put(report.expert_memory.count());
  out.PutMeasure(report.measured.disk_bytes_per_second);
  out.PutMeasure(report.measured.seconds_an_expert);
  out.PutMeasure(report.measured.seconds_a_row);
  out.PutMeasure(report.measured.seconds_a_remote_row);
  PutGrid(out, report.grid);
  out.Put(form);
  PutCounts(out, report.activations, form, activated);
  out.Put(static_cast<std::uint16_t>(report.measured.links.size()));
  for (const NodeMeasures::Link& link : report.measured.links) {
    out.PutName(link.peer);
    out.PutMeasure(link.round_trip_seconds);
    out.PutMeasure(link.bytes_per_second);
  }
  return std::move(out).Take();
}

Result<PeerReport> DecodePeerReport(std::span<const std::byte> frame) {
  FrameReader in(PeerMessageKind::kReport, frame);
  PeerReport report;
  report.seconds = in.ReadMeasure("seconds covered");
  report.expert_memory = Bytes(in.Read<std::uint64_t>("memory for experts"));
  report.measured.disk_bytes_per_second = in.ReadMeasure("speed of the disk");
  report.measured.seconds_an_expert = in.ReadMeasure("seconds an expert");
  report.measured.seconds_a_row = in.ReadMeasure("seconds a row");
  report.measured.seconds_a_remote_row = in.ReadMeasure("seconds a remote row");
  report.grid = ReadGrid(in);
  const auto form = in.ReadEnum("form of counts", CountForm::kDense, CountForm::kSparse);
  report.activations = form == CountForm::kDense ? ReadDense(in, report.grid.Count())
                                                 : ReadSparse(in, report.grid.Count());
  report.measured.links = ReadLinks(in);
  TROUPE_RETURN_IF_ERROR(in.Finish());
  return report;
}

}  // namespace troupe
