#include "cluster/second_opinion.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "cluster/answer_rows.h"
#include "cluster/spot_checker.h"
#include "cluster/wire/answer.h"
#include "cluster/wire/ask.h"
#include "cluster/wire/message_kind.h"

namespace troupe {
namespace {

constexpr std::uint64_t kFirstOwnCall = std::uint64_t{1} << 63;  // no pass comes so far
constexpr Nanos kLongestOpinion = 10'000'000'000;
constexpr std::size_t kMostDisputed = 4;  // rows

}  // namespace

void SecondOpinion::KeepDiffering(std::uint32_t width, SpotCheck& check, std::vector<float>& own) {
  const std::size_t bytes = WireRowBytes(check.form, width);
  std::size_t kept = 0;
  for (std::size_t i = 0; i < check.rows && kept < kMostDisputed; ++i) {
    const auto mine = std::span(own).subspan(i * width, width);
    const auto answered = std::span(check.answer).subspan(i * width, width);
    if (AreSameRows(mine, answered)) continue;
    std::ranges::copy(mine, own.begin() + static_cast<std::ptrdiff_t>(kept * width));
    std::ranges::copy(answered, check.answer.begin() + static_cast<std::ptrdiff_t>(kept * width));
    std::ranges::copy(std::span(check.asked).subspan(i * bytes, bytes),
                      check.asked.begin() + static_cast<std::ptrdiff_t>(kept * bytes));
    ++kept;
  }
  check.rows = kept;
  check.asked.resize(kept * bytes);
  check.answer.resize(kept * width);
  own.resize(kept * width);
}

bool SecondOpinion::Ask(SpotCheck check, std::vector<float> own, LinkId link, Nanos now) {
  if (dispute_) return false;
  KeepDiffering(width_, check, own);
  if (check.rows == 0) return false;
  std::vector<std::uint16_t> all(check.rows);
  std::iota(all.begin(), all.end(), std::uint16_t{0});
  const PeerAsk ask{.call = kFirstOwnCall + ++last_call_,
                    .layer = static_cast<std::uint16_t>(check.id.layer),
                    .deadline_micros = static_cast<std::uint32_t>(kLongestOpinion / 1000),
                    .experts = {{static_cast<std::uint16_t>(check.id.expert), all}},
                    .answer = check.answer_form,
                    .rows = {check.form, width_, check.rows, check.asked}};
  if (!send_(link, Encode(ask)).ok()) return false;
  dispute_ = Dispute{.check = std::move(check),
                     .own = std::move(own),
                     .second = {},
                     .link = link,
                     .call = ask.call,
                     .until = now + kLongestOpinion};
  return true;
}

bool SecondOpinion::OnFrame(LinkId link, std::span<const std::byte> frame) {
  if (!dispute_) return false;
  const Result<PeerMessageKind> kind = KindOfFrame(frame);
  if (!kind.ok()) return false;
  if (*kind == PeerMessageKind::kAskRefused) {
    const auto refused = DecodePeerAskRefused(frame);
    if (!refused.ok() || refused->call < kFirstOwnCall) return false;
    if (dispute_->link == link && dispute_->call == refused->call) dispute_->over = true;
    return true;
  }
  const auto answer = DecodePeerAnswer(frame);
  if (!answer.ok() || answer->call < kFirstOwnCall) return false;
  if (dispute_->link != link || dispute_->call != answer->call) return true;
  const WireRows& rows = answer->rows;
  if (rows.width == width_ && rows.form == dispute_->check.answer_form &&
      dispute_->second.size() + rows.count * width_ <= dispute_->own.size()) {
    for (std::size_t i = 0; i < rows.count; ++i) {
      dispute_->second.resize(dispute_->second.size() + width_);
      ReadAnswerRow(rows.form, rows.Row(i), std::span(dispute_->second).last(width_));
    }
  }
  dispute_->over = answer->last || dispute_->second.size() == dispute_->own.size();
  return true;
}

void SecondOpinion::OnGone(LinkId link) {
  if (dispute_ && dispute_->link == link) dispute_->over = true;
}

std::optional<SecondOpinion::Outcome> SecondOpinion::TakeDone(Nanos now) {
  if (!dispute_ || (!dispute_->over && now < dispute_->until)) return std::nullopt;
  Dispute done = *std::exchange(dispute_, std::nullopt);
  const Verdict verdict = AreSameRows(done.second, done.own)            ? Verdict::kPeerWrong
                          : AreSameRows(done.second, done.check.answer) ? Verdict::kOwnWrong
                                                                        : Verdict::kNone;
  return Outcome{.check = std::move(done.check), .verdict = verdict};
}

}  // namespace troupe
