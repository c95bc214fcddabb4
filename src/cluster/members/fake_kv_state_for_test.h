// The state of a key-value store as etcd keeps it, for tests: keys with revisions, leases on a
// clock that the test moves, the history that watches read. A value: a copy of it is a backup.
#pragma once

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/check.h"
#include "cluster/members/kv_store.h"

namespace troupe {

inline constexpr Nanos kFakeSecond = 1'000'000'000;

class FakeKvState {
 public:
  using Keys = std::map<std::string, KvEntry, std::less<>>;

  // Told of each put before it is made.
  void set_on_put(std::function<void(const FakeKvState&, const KvPut&)> on_put) {
    on_put_ = std::move(on_put);
  }

  KvRevision revision() const { return revision_; }
  const Keys& keys() const { return keys_; }
  const KvEntry* Find(std::string_view key) const {
    const auto found = keys_.find(key);
    return found == keys_.end() ? nullptr : &found->second;
  }

  // Answers anything but watches.
  KvEvent Answer(KvAsk ask, const KvRequest& request, Nanos now) {
    ExpireLeases(now);
    KvEvent event{.ask = ask};
    std::visit([&](const auto& asked) { event.what = Do(asked, now); }, request);
    if (!std::holds_alternative<KvFailure>(event.what)) event.revision = revision_;
    return event;
  }

  void ExpireLeases(Nanos now) {
    for (auto lease = leases_.begin(); lease != leases_.end();) {
      const bool ends = lease->second.ends <= now;
      const KvLease id = (lease++)->first;
      if (ends) End(id);
    }
  }
  // When the next lease ends.
  std::optional<Nanos> next_end() const {
    std::optional<Nanos> next;
    for (const auto& [id, lease] : leases_) next = std::min(next.value_or(lease.ends), lease.ends);
    return next;
  }
  // What a store does when it begins to serve.
  void RenewLeases(Nanos now) {
    for (auto& [id, lease] : leases_) lease.ends = now + lease.ttl;
  }

  // Nothing: some of it is no longer kept.
  std::optional<std::vector<KvChange>> ChangesFrom(KvRevision from, std::string_view prefix) const {
    if (from <= compacted_) return std::nullopt;
    std::vector<KvChange> changes;
    auto change = std::ranges::partition_point(
        history_, [&](const KvChange& other) { return other.entry.modified < from; });
    for (; change != history_.end(); ++change) {
      if (change->entry.key.starts_with(prefix)) changes.push_back(*change);
    }
    return changes;
  }
  void Compact() {
    compacted_ = revision_;
    history_.clear();
  }

 private:
  struct Lease {
    Nanos ttl = 0, ends = 0;
  };
  using What = decltype(KvEvent::what);

  static What NoLease() {
    return KvFailure{.fault = KvFault::kLeaseExpired, .message = "requested lease not found"};
  }

  What Do(const GrantLease& grant, Nanos now) {
    const KvLease id = ++*last_lease_;
    leases_[id] = {.ttl = grant.ttl, .ends = now + grant.ttl};
    return LeaseGranted{.lease = id, .ttl = grant.ttl};
  }
  What Do(const KeepLease& keep, Nanos now) {
    const auto lease = leases_.find(keep.lease);
    if (lease == leases_.end()) return NoLease();
    lease->second.ends = now + lease->second.ttl;
    return LeaseKept{.ttl = lease->second.ttl};
  }
  What Do(const RevokeLease& revoke, Nanos) {
    if (!leases_.contains(revoke.lease)) return NoLease();
    End(revoke.lease);
    return LeaseRevoked{};
  }
  What Do(const ReadPrefix& read, Nanos) {
    PrefixRead found;
    for (const auto& [key, entry] : keys_) {
      if (!key.starts_with(read.prefix)) continue;
      found.entries.push_back(entry);
      if (read.keys_only) found.entries.back().value.clear();
    }
    return found;
  }
  What Do(const KvTransaction& transaction, Nanos) {
    TransactionDone done{.held = std::ranges::all_of(transaction.compares,
                                                     [&](const KvCompare& c) { return Holds(c); })};
    if (done.held) {
      for (const KvPut& put : transaction.puts) {
        if (put.lease != 0 && !leases_.contains(put.lease)) return NoLease();
      }
      if (!transaction.puts.empty() || !transaction.deletes.empty()) ++revision_;
      for (const KvPut& put : transaction.puts) Put(put);
      for (const std::string& key : transaction.deletes) Delete(key);
    }
    for (const std::string& key : done.held ? transaction.gets : transaction.else_gets) {
      const KvEntry* entry = Find(key);
      done.entries.push_back(entry != nullptr ? *entry : KvEntry{.key = key});
    }
    return done;
  }
  What Do(const WatchPrefix&, Nanos) { return NotHere(); }
  What Do(const EndWatch&, Nanos) { return NotHere(); }
  static What NotHere() {
    TROUPE_CHECK(false);  // watches are whose it is that carries changes
    return {};
  }

  bool Holds(const KvCompare& compare) const {
    const KvEntry* entry = Find(compare.key);
    switch (compare.what) {
      case KvCompare::What::kCreated:
        return (entry == nullptr ? 0 : entry->created) == compare.revision;
      case KvCompare::What::kModified:
        return (entry == nullptr ? 0 : entry->modified) == compare.revision;
      case KvCompare::What::kValue:
        return entry != nullptr && entry->value == compare.value;
    }
    return false;
  }
  // At the present revision.
  void Put(const KvPut& put) {
    if (on_put_) on_put_(*this, put);
    KvEntry& entry = keys_[put.key];
    entry = {.key = put.key,
             .value = put.value,
             .created = entry.created == 0 ? revision_ : entry.created,
             .modified = revision_,
             .lease = put.lease};
    history_.push_back({.entry = entry});
  }
  void Delete(const std::string& key) {
    if (keys_.erase(key) == 0) return;
    history_.push_back({.entry = {.key = key, .modified = revision_}, .deleted = true});
  }
  void End(KvLease id) {
    leases_.erase(id);
    std::vector<std::string> gone;
    for (const auto& [key, entry] : keys_) {
      if (entry.lease == id) gone.push_back(key);
    }
    if (!gone.empty()) ++revision_;
    for (const std::string& key : gone) Delete(key);
  }

  KvRevision revision_ = 1;
  KvRevision compacted_ = 0;
  Keys keys_;
  std::map<KvLease, Lease> leases_;
  // Shared with the backups: no lease is given twice, as etcd's contain the time.
  std::shared_ptr<KvLease> last_lease_ = std::make_shared<KvLease>(0);
  std::vector<KvChange> history_;
  std::function<void(const FakeKvState&, const KvPut&)> on_put_;
};

}  // namespace troupe
