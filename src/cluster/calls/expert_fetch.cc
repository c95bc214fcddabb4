#include "cluster/calls/expert_fetch.h"

#include <utility>

#include "base/check.h"

namespace troupe {

void ExpertFetch::Begin(std::vector<Wanted> wanted) {
  TROUPE_CHECK(wanted_.empty() && done_.empty());
  wanted_ = std::move(wanted);
  bytes_.clear();
}

std::optional<std::map<ExpertId, std::vector<std::byte>>> ExpertFetch::TakeDone() {
  if (busy()) return std::nullopt;
  return std::exchange(done_, {});
}

std::optional<ExpertFetch::Request> ExpertFetch::Next(Nanos now) {
  if (open_ && now - open_->sent >= patience_) LeaveSource();
  while (!wanted_.empty() && (wanted_.front().sources.empty() || IsTooLate(now))) {
    ++counters_.left;
    TakeNextExpert();
  }
  if (wanted_.empty() || open_ || now < rests_until_) return std::nullopt;
  const Wanted& one = wanted_.front();
  if (!begun_) begun_ = now;
  open_ = {.request = {.source = one.sources.front(),
                       .number = ++last_number_,
                       .id = one.id,
                       .offset = bytes_.size()},
           .sent = now};
  return open_->request;
}

bool ExpertFetch::IsTooLate(Nanos now) const {
  return begun_ && now - *begun_ >= wanted_.front().longest;
}

std::optional<Nanos> ExpertFetch::NextTime() const {
  if (wanted_.empty()) return std::nullopt;
  return open_ ? open_->sent + patience_ : rests_until_;
}

void ExpertFetch::OnPiece(Source source, const Piece& piece, Nanos now) {
  if (!open_ || open_->request.source != source || open_->request.number != piece.number) return;
  const Wanted& one = wanted_.front();
  const bool fits = piece.id == one.id && piece.total == one.bytes &&
                    piece.offset == bytes_.size() && !piece.data.empty() &&
                    piece.data.size() <= one.bytes - bytes_.size();
  if (!fits || piece.checksum.value_or(one.checksum) != one.checksum) {
    ++counters_.wrong;
    return LeaveSource();
  }
  rests_until_ = now + (now - open_->sent);
  open_.reset();
  counters_.bytes += piece.data.size();
  bytes_.reserve(one.bytes);
  bytes_.insert(bytes_.end(), piece.data.begin(), piece.data.end());
  if (bytes_.size() < one.bytes) return;
  if (checksum_(bytes_) == one.checksum) {
    ++counters_.experts;
    done_[one.id] = std::move(bytes_);
  } else {  // whose piece it was is not known
    ++counters_.wrong;
    ++counters_.left;
  }
  TakeNextExpert();
}

void ExpertFetch::OnRefused(Source source, std::uint64_t number) {
  if (open_ && open_->request.source == source && open_->request.number == number) LeaveSource();
}

void ExpertFetch::OnLost(Source source) {
  if (open_ && open_->request.source == source) LeaveSource();
  for (Wanted& one : wanted_) std::erase(one.sources, source);
}

void ExpertFetch::LeaveSource() {
  Wanted& one = wanted_.front();
  std::erase(one.sources, open_->request.source);
  if (!bytes_.empty() && !one.sources.empty()) ++counters_.resumed;
  open_.reset();
  rests_until_ = 0;
}

void ExpertFetch::TakeNextExpert() {
  wanted_.erase(wanted_.begin());
  bytes_.clear();
  open_.reset();
  begun_.reset();
}

}  // namespace troupe
