// What a node knows of the keys under its cluster's prefix. Reads are the truth; a watch's changes
// only bring news sooner, so that a watch that is lost, or that waits in silence for revisions
// which a restored store has not reached again, does no more harm than a delay until the next read.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "cluster/members/kv_store.h"

namespace troupe {

class StoreView {
 public:
  enum class Took {
    kNothingNew,
    kNews,       // that no watch has told
    kOvertaken,  // left out: a watch has already told more
    kWentBack,   // the store is an older one than before
  };

  // `known` is what revision() was when the read was asked: a store that answers with less has been
  // restored. What it answers is never older otherwise, while a watch may tell more in the
  // meantime.
  Took TakeRead(KvRevision revision, const std::vector<KvEntry>& entries, KvRevision known);
  // Whether anything changed. Changes that a read has already shown are left out.
  bool TakeChanges(const std::vector<KvChange>& changes);

  KvRevision revision() const { return revision_; }
  // Grows whenever an entry changes.
  std::uint64_t changes() const { return changes_; }
  // Null: there is no such key.
  const KvEntry* Find(std::string_view key) const;
  const std::map<std::string, KvEntry, std::less<>>& entries() const { return entries_; }

 private:
  KvRevision revision_ = 0;
  std::uint64_t changes_ = 0;
  std::map<std::string, KvEntry, std::less<>> entries_;
};

}  // namespace troupe
