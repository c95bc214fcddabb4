#include "cluster/members/store_view.h"

#include <algorithm>

namespace troupe {

StoreView::Took StoreView::TakeRead(KvRevision revision, const std::vector<KvEntry>& entries,
                                    KvRevision known) {
  const bool back = revision < known;
  if (!back && revision < revision_) return Took::kOvertaken;
  const bool news = !std::ranges::equal(
      entries, entries_, {}, {}, [](const auto& held) -> const KvEntry& { return held.second; });
  revision_ = revision;
  if (news) {
    ++changes_;
    entries_.clear();
    for (const KvEntry& entry : entries) entries_.emplace(entry.key, entry);
  }
  return back ? Took::kWentBack : news ? Took::kNews : Took::kNothingNew;
}

bool StoreView::TakeChanges(const std::vector<KvChange>& changes) {
  const KvRevision before = revision_;
  bool changed = false;
  for (const KvChange& change : changes) {
    if (change.entry.modified <= before) continue;
    revision_ = std::max(revision_, change.entry.modified);
    changed = true;
    if (change.deleted) {
      entries_.erase(change.entry.key);
    } else {
      entries_.insert_or_assign(change.entry.key, change.entry);
    }
  }
  changes_ += changed;
  return changed;
}

const KvEntry* StoreView::Find(std::string_view key) const {
  const auto found = entries_.find(key);
  return found == entries_.end() ? nullptr : &found->second;
}

}  // namespace troupe
