#include "testing/fake_reader.h"

#include <algorithm>
#include <cerrno>
#include <limits>

namespace troupe {

void FakeReader::Submit(std::span<const ReadRequest> requests) {
  TROUPE_CHECK(requests.size() <= depth_ - waiting_.size());
  for (const ReadRequest& request : requests) {
    ++submitted_;
    log_.emplace_back(request.fd, request.offset);
    Fault fault = script_ ? script_(request) : Fault::kNone;
    gone_ = gone_ || fault == Fault::kGone;
    if (gone_) fault = Fault::kGone;
    waiting_.push_back({request, fault});
  }
}

void FakeReader::Collect(std::vector<ReadAnswer>& answers, std::optional<Nanos> wait) {
  const bool may_wait = !wait.has_value() || *wait > 0;
  std::size_t count = waiting_.size();
  if (held_) count = std::min<std::size_t>(count, may_wait ? 1 : 0);
  for (; count > 0; --count) {
    const Waiting next = reverse_ ? waiting_.back() : waiting_.front();
    reverse_ ? waiting_.pop_back() : waiting_.pop_front();
    answers.push_back(Answer(next.request, next.fault));
  }
}

ReadAnswer FakeReader::Answer(const ReadRequest& request, Fault fault) {
  if (fault == Fault::kGone) return AnswerTo(request, -ENODEV);
  if (fault == Fault::kError) return AnswerTo(request, -EIO);
  const auto file = files_.find(request.fd);
  if (file == files_.end()) return AnswerTo(request, -EBADF);
  if (request.offset > std::numeric_limits<std::int64_t>::max()) return AnswerTo(request, -EINVAL);

  const std::span<const std::byte> bytes = file->second;
  const std::size_t start = std::min<std::size_t>(request.offset, bytes.size());
  std::size_t count = std::min(request.target.size(), bytes.size() - start);
  if (fault == Fault::kShort) count = std::min(count, request.target.size() / 2);
  if (fault == Fault::kEnd) count = 0;
  std::ranges::copy(bytes.subspan(start, count), request.target.begin());
  if (fault == Fault::kCorrupt && count > 0) request.target[count / 2] ^= std::byte{1};
  bytes_read_ += count;
  return AnswerTo(request, static_cast<std::int64_t>(count));
}

}  // namespace troupe
