#include "server/end_drafts.h"

namespace troupe {

EndDrafts::Place EndDrafts::Open(std::uint64_t end, std::uint64_t name) {
  Place place(*this, {end, name});
  const MutexLock lock(mu_);
  open_[place.key_] = place.draft_;
  return place;
}

std::shared_ptr<OfferedDraft> EndDrafts::Find(std::uint64_t end, std::uint64_t name) const {
  const MutexLock lock(mu_);
  const auto found = open_.find({end, name});
  return found == open_.end() ? nullptr : found->second;
}

std::size_t EndDrafts::size() const {
  const MutexLock lock(mu_);
  return open_.size();
}

void EndDrafts::Close(const Key& key, const OfferedDraft* draft) {
  const MutexLock lock(mu_);
  const auto found = open_.find(key);
  if (found != open_.end() && found->second.get() == draft) open_.erase(found);
}

}  // namespace troupe
