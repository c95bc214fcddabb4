#include "cluster/wire/report.h"

#include <gtest/gtest.h>

#include "cluster/wire/wire_for_test.h"

namespace troupe {
namespace {

constexpr std::size_t kFormAt = 1 + 6 * 8 + 8;

PeerReport ReportOf(ExpertGrid grid, std::size_t activated) {
  PeerReport report{.grid = grid, .activations = std::vector<std::uint32_t>(grid.Count())};
  for (std::size_t i = 0; i < activated; ++i) report.activations[i] = 1;
  return report;
}

TEST(Report, TakesTheShorterFormOfItsCounts) {
  const ExpertGrid grid{4, 64};
  for (std::size_t activated = 0; activated <= grid.Count(); ++activated) {
    const PeerReport report = ReportOf(grid, activated);
    const WireFrame frame = Encode(report);
    const std::size_t counts = frame.size() - kFormAt - 1 - 2;
    EXPECT_EQ(counts, std::min(grid.Count() * 4, 4 + activated * 8)) << activated;
    EXPECT_EQ(frame[kFormAt], static_cast<std::byte>(counts < grid.Count() * 4));
    EXPECT_EQ(DecodePeerReport(frame).value(), report) << activated;
  }
}

TEST(Report, ReadsTheLongerFormAsWell) {
  WireFrame frame = Encode(ReportOf({1, 2}, 0));
  EXPECT_EQ(HexOfFrame(std::span(frame).subspan(kFormAt)), "01000000000000");
  frame.resize(kFormAt);
  for (const std::byte b : FrameOfHex("00 00000000 00000000 0000")) frame.push_back(b);
  EXPECT_EQ(DecodePeerReport(frame).value(), ReportOf({1, 2}, 0));
}

TEST(Report, SaysWhatIsWrongWithItsCounts) {
  const auto status_of = [](const char* rest) {
    WireFrame frame = Encode(ReportOf({2, 4}, 1));
    frame.resize(kFormAt);
    for (const std::byte b : FrameOfHex(rest)) frame.push_back(b);
    return DecodePeerReport(frame).status();
  };
  EXPECT_EQ(status_of("01 02000000 03000000 01000000 07000000 01000000 0000"), OkStatus());
  EXPECT_EQ(status_of("02"), DataLoss("report, byte 57: form of counts: 2 found, 0 to 1 expected"));
  EXPECT_EQ(status_of("01 02000000 03000000 01000000 08000000 01000000 0000"),
            DataLoss("report, byte 70: index of an expert: 8 found, 4 to 7 expected"));
  EXPECT_EQ(status_of("01 02000000 03000000 01000000 03000000 01000000 0000"),
            DataLoss("report, byte 70: index of an expert: 3 found, 4 to 7 expected"));
  EXPECT_EQ(status_of("01 01000000 03000000 00000000 0000"),
            DataLoss("report, byte 66: activations of an expert: 0 found, 1 or more expected"));
  EXPECT_EQ(
      status_of("01 03000000 03000000 01000000 07000000 01000000 0000"),
      DataLoss("report, byte 58: experts activated: 3 found, at most 2 expected in the 18 bytes "
               "that remain"));
  EXPECT_EQ(status_of("00 00000000"),
            DataLoss("report, byte 58: activations: 4 bytes found, 32 expected"));
}

TEST(Report, SaysWhatIsWrongWithItsLinks) {
  const auto status_of = [](const char* links) {
    WireFrame frame = Encode(ReportOf({2, 4}, 1));
    frame.resize(frame.size() - 2);
    for (const std::byte b : FrameOfHex(links)) frame.push_back(b);
    return DecodePeerReport(frame).status();
  };
  EXPECT_EQ(status_of("0100 0100 6e 0000000000000000 0000000000000000"), OkStatus());
  EXPECT_EQ(status_of("ffff 0100 6e 0000000000000000 0000000000000000"),
            DataLoss("report, byte 70: links: 65535 found, at most 1 expected in the 19 bytes that "
                     "remain"));
  EXPECT_EQ(status_of("0100 0000 0000000000000000 0000000000000000 00"),
            DataLoss("report, byte 72: peer: 0 characters found, 1 to 255 expected"));
  EXPECT_EQ(
      status_of("0100 0100 6e 000000000000f07f 0000000000000000"),
      DataLoss("report, byte 75: round trip: inf found, a finite number not below 0 expected"));
}

TEST(Report, IsPrintedInALine) {
  PeerReport report = ReportOf({2, 4}, 3);
  report.seconds = 60;
  report.expert_memory = 1_GiB;
  report.measured.disk_bytes_per_second = 1e9;
  report.measured.seconds_an_expert = 0.0005;
  report.measured.seconds_a_row = 0.000002;
  report.measured.seconds_a_remote_row = 0.0004;
  report.measured.links = {{"n2", 0.0003, 1.2e8}};
  EXPECT_EQ(
      ToString(report),
      "report of 60.0 s: 3 experts activated of 2 layers of 4 experts, 1.0 GiB for experts, disk "
      "1000000000 bytes/s, 0.000500000 s an expert, 0.000002000 s a row, 0.000400000 s a "
      "remote row more; n2: 0.000300 s, 120000000 bytes/s");
}

TEST(ReportDeathTest, CountsOfAnotherModelAreABug) {
  PeerReport report = ReportOf({2, 4}, 1);
  report.activations.pop_back();
  EXPECT_DEATH(Encode(report), "broken invariant");
}

}  // namespace
}  // namespace troupe
