// For tests: valid messages of each kind, with random contents.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <span>
#include <string>
#include <vector>

#include "base/rng.h"
#include "cluster/wire/peer_message.h"

namespace troupe {

// Messages that show rows show some that lie here.
class RandomMessages {
 public:
  explicit RandomMessages(Rng& rng) : rng_(rng) {}

  // One of the kind at this index of PeerMessage.
  PeerMessage OfKind(std::size_t index) {
    switch (index) {
      case 0:
        return Hello();
      case 1:
        return PeerRefused{static_cast<PeerRefused::Reason>(rng_.Below(9)), Text()};
      case 2:
        return Ask();
      case 3:
        return Answer();
      case 4:
        return PeerAskRefused{rng_(), static_cast<PeerAskRefused::Reason>(1 + rng_.Below(4)),
                              Text()};
      case 5:
        return PeerCancel{rng_()};
      case 6:
        return Holdings();
      case 7:
        return PeerPing{rng_()};
      case 8:
        return PeerPong{rng_(), Some()};
      case 9:
        return PeerFetch{rng_(), {Some(), Some()}, rng_()};
      case 10:
        return APiece();
      case 11:
        return PeerFetchRefused{rng_(), static_cast<PeerFetchRefused::Reason>(1 + rng_.Below(4)),
                                Text()};
      case 12:
        return Report();
      case 13:
        return PeerPlanNotice{rng_(), std::string(rng_.Below(100), '{')};
      default:
        return PeerAccusation{rng_(), Some(), Some()};
    }
  }

  PeerHello Hello() {
    const RowForm form = Form();
    return {.start_id = rng_(),
            .model = {rng_(), rng_()},
            .arithmetic = rng_(),
            .grid = Grid(),
            .width = Width(form),
            .form = form,
            .plan_epoch = rng_(),
            .cluster = Name(),
            .node = Name(),
            .address = Name()};
  }

  PeerAsk Ask() {
    PeerAsk ask{
        .call = rng_(), .layer = static_cast<std::uint16_t>(rng_()), .deadline_micros = Some()};
    const RowForm form = Form();
    ask.rows = Rows(form, Width(form), 1 + rng_.Below(6));
    const RowForm answer = AnswerForm();
    if (TakesWidth(answer, ask.rows.width)) ask.answer = answer;
    for (const std::uint16_t expert : Experts(1 + rng_.Below(5))) {
      auto& indices = indices_.emplace_back();
      for (std::size_t row = 0; row < ask.rows.count; ++row) {
        if (rng_.Below(2) == 0) indices.push_back(static_cast<std::uint16_t>(row));
      }
      if (indices.empty()) indices.push_back(0);
      ask.experts.push_back({expert, indices});
    }
    return ask;
  }

  PeerAnswer Answer() {
    PeerAnswer answer{.call = rng_(),
                      .last = rng_.Below(2) == 0,
                      .waited_micros = Some(),
                      .computed_micros = Some(),
                      .waiting = Some()};
    std::size_t rows = 0;
    for (const std::uint16_t expert : Experts((answer.last ? 0 : 1) + rng_.Below(5))) {
      answer.experts.push_back({expert, static_cast<std::uint16_t>(1 + rng_.Below(4))});
      rows += answer.experts.back().rows;
    }
    const RowForm form = AnswerForm();
    answer.rows = Rows(form, Width(form), rows);
    return answer;
  }

  PeerHoldings Holdings() {
    PeerHoldings holdings{rng_(), rng_(), ExpertBits(Grid())};
    const ExpertGrid grid = holdings.held.grid();
    for (ExpertId id; id.layer < grid.layers; ++id.layer) {
      for (id.expert = 0; id.expert < grid.experts; ++id.expert) {
        if (rng_.Below(3) == 0) holdings.held.Add(id);
      }
    }
    return holdings;
  }

  PeerPiece APiece() {
    PeerPiece piece{.id = rng_(), .expert = {Some(), Some()}, .hash = rng_()};
    piece.data = RandomBytes(1 + rng_.Below(200));
    piece.offset = rng_.Below(kMaxExpertBytes - piece.data.size() + 1);
    const std::uint64_t end = piece.offset + piece.data.size();
    piece.total = end + rng_.Below(kMaxExpertBytes - end + 1);
    return piece;
  }

  PeerReport Report() {
    PeerReport report{.seconds = Measure(), .grid = Grid(), .activations = {}};
    const std::uint64_t rarity = 1 + rng_.Below(6);  // both forms of counts
    report.activations.resize(report.grid.Count());
    for (std::uint32_t& count : report.activations) {
      if (rng_.Below(rarity) == 0) count = Some();
    }
    report.expert_memory = Bytes(rng_());
    report.measured.disk_bytes_per_second = Measure();
    report.measured.seconds_an_expert = Measure();
    report.measured.seconds_a_row = Measure();
    report.measured.seconds_a_remote_row = Measure();
    report.measured.links.resize(rng_.Below(4));
    for (NodeMeasures::Link& link : report.measured.links) link = {Name(), Measure(), Measure()};
    return report;
  }

 private:
  std::uint32_t Some() { return static_cast<std::uint32_t>(rng_()); }
  double Measure() { return rng_.Below(4) == 0 ? 0.0 : rng_.Uniform() * 1e12; }
  RowForm Form() { return rng_.Below(2) == 0 ? RowForm::kFloat : RowForm::kInt8; }
  RowForm AnswerForm() { return static_cast<RowForm>(rng_.Below(3)); }
  std::uint32_t Width(RowForm form) {
    const auto least = static_cast<std::uint32_t>(1 + rng_.Below(3));
    return form != RowForm::kInt8 ? least : least * static_cast<std::uint32_t>(kGroupCols);
  }
  ExpertGrid Grid() {
    return {static_cast<std::uint32_t>(1 + rng_.Below(5)),
            static_cast<std::uint32_t>(1 + rng_.Below(20))};
  }
  std::string Name() {
    std::string name(1 + rng_.Below(20), ' ');
    for (char& c : name) c = static_cast<char>('!' + rng_.Below('~' - '!' + 1));
    return name;
  }
  std::string Text() {
    std::string text(rng_.Below(30), ' ');
    for (char& c : text) c = static_cast<char>(' ' + rng_.Below('~' - ' ' + 1));
    return text;
  }
  std::vector<std::uint16_t> Experts(std::size_t count) {
    std::vector<std::uint16_t> experts;
    while (experts.size() < count) {
      const auto expert = static_cast<std::uint16_t>(rng_());
      if (std::ranges::find(experts, expert) == experts.end()) experts.push_back(expert);
    }
    return experts;
  }
  std::span<const std::byte> RandomBytes(std::size_t count) {
    auto& bytes = bytes_.emplace_back(count);
    for (std::byte& b : bytes) b = static_cast<std::byte>(rng_());
    return bytes;
  }
  WireRows Rows(RowForm form, std::uint32_t width, std::size_t count) {
    return {form, width, count, RandomBytes(count * WireRowBytes(form, width))};
  }

  Rng& rng_;
  std::deque<std::vector<std::byte>> bytes_;
  std::deque<std::vector<std::uint16_t>> indices_;
};

}  // namespace troupe
