// Where drafts of ends meet the answers that they are for: an answer that is being chosen here has
// a place under the name that its end gave it, and offers of that end to that name find it.
// Thread-safe. The draft itself is text/draft/offered_draft.h's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <utility>

#include "base/mutex.h"
#include "text/draft/offered_draft.h"

namespace troupe {

class EndDrafts {
  using Key = std::pair<std::uint64_t, std::uint64_t>;

 public:
  // While it lives, the draft is found. Must not outlive the drafts.
  class Place {
   public:
    Place(Place&& other) noexcept
        : drafts_(std::exchange(other.drafts_, nullptr)),
          key_(other.key_),
          draft_(std::move(other.draft_)) {}
    Place& operator=(Place&&) = delete;
    ~Place() {
      if (drafts_ != nullptr) drafts_->Close(key_, draft_.get());
    }

    const std::shared_ptr<OfferedDraft>& draft() const { return draft_; }

   private:
    friend class EndDrafts;
    Place(EndDrafts& drafts, Key key)
        : drafts_(&drafts), key_(key), draft_(std::make_shared<OfferedDraft>()) {}
    EndDrafts* drafts_;  // null after a move
    Key key_;
    std::shared_ptr<OfferedDraft> draft_;
  };

  // In place of another one of that name.
  Place Open(std::uint64_t end, std::uint64_t name);
  // Null: no such answer is being chosen.
  std::shared_ptr<OfferedDraft> Find(std::uint64_t end, std::uint64_t name) const;

  std::size_t size() const;

 private:
  void Close(const Key& key, const OfferedDraft* draft);

  mutable Mutex mu_;
  std::map<Key, std::shared_ptr<OfferedDraft>> open_ TROUPE_GUARDED_BY(mu_);
};

}  // namespace troupe
