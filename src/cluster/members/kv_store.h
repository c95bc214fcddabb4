// What a cluster asks of a key-value store with revisions, leases, transactions and watches, and
// what the store answers, as values. A port: etcd fills it (cluster/etcd), in tests a simulation.
//
// Each request but EndWatch is answered by events that carry its number. One that fails with
// kUnavailable may have been carried out, or may be carried out later. A watch goes on until it
// fails, or until it is ended, which is not answered.
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "base/clock.h"

namespace troupe {

// Counts the changes of the whole store. It goes back only when an older state is restored.
using KvRevision = std::int64_t;
using KvLease = std::int64_t;  // 0: none
using KvAsk = std::uint64_t;   // chosen by who asks, from 1, never twice

struct KvEntry {
  std::string key;
  std::string value;
  KvRevision created = 0;  // when the key came to be; 0: there is no such key
  KvRevision modified = 0;
  KvLease lease = 0;  // the key goes when this lease ends

  bool operator==(const KvEntry&) const = default;
};

// Holds if what is there equals what is named here. A key that is absent was created at 0.
struct KvCompare {
  enum class What { kCreated, kModified, kValue };

  std::string key;
  What what = What::kCreated;
  KvRevision revision = 0;  // for kCreated and kModified
  std::string value;        // for kValue
};

struct KvPut {
  std::string key;
  std::string value;
  KvLease lease = 0;
};

// Answered by LeaseGranted, LeaseKept and LeaseRevoked. The store may grant a longer time to live.
struct GrantLease {
  Nanos ttl = 0;
};
struct KeepLease {
  KvLease lease = 0;
};
struct RevokeLease {  // its keys go at once
  KvLease lease = 0;
};
// All or nothing: if every comparison holds, puts, deletes and gets, else else_gets. Names no key
// twice among puts and deletes. Answered by TransactionDone.
struct KvTransaction {
  std::vector<KvCompare> compares;
  std::vector<KvPut> puts;
  std::vector<std::string> deletes;
  std::vector<std::string> gets;
  std::vector<std::string> else_gets;
};
// The newest state, never one that is older than what this store has told anybody before it was
// asked. Answered by PrefixRead.
struct ReadPrefix {
  std::string prefix;
  bool keys_only = false;  // values stay empty
};
// All changes from revision `from` on, those that have already been made included. Answered by
// WatchChanges, as often as there are any, in the order of their revisions.
struct WatchPrefix {
  std::string prefix;
  KvRevision from = 0;
};
struct EndWatch {
  KvAsk watch = 0;
};
using KvRequest = std::variant<GrantLease, KeepLease, RevokeLease, KvTransaction, ReadPrefix,
                               WatchPrefix, EndWatch>;

struct LeaseGranted {
  KvLease lease = 0;
  Nanos ttl = 0;
};
struct LeaseKept {
  Nanos ttl = 0;
};
struct LeaseRevoked {};
struct TransactionDone {
  bool held = false;             // all comparisons did
  std::vector<KvEntry> entries;  // in the order of the gets; absent keys were created at 0
};
struct PrefixRead {
  std::vector<KvEntry> entries;  // in the order of their keys
};
struct KvChange {
  KvEntry entry;  // of a key that went only the key and when (modified)
  bool deleted = false;
};
struct WatchChanges {
  std::vector<KvChange> changes;  // a revision's changes are never divided
};

enum class KvFault {
  kUnavailable,   // the store cannot be reached, or is too slow
  kDistrusted,    // it is there, and its certificate is of another authority
  kCompacted,     // the revision from which to watch is no longer kept
  kLeaseExpired,  // there is no such lease
  kRefused,       // anything else: no permission, no space
};
struct KvFailure {
  KvFault fault = KvFault::kUnavailable;
  std::string message;
};

struct KvEvent {
  KvAsk ask = 0;
  KvRevision revision = 0;  // of the store when it answered; 0 in failures
  std::variant<LeaseGranted, LeaseKept, LeaseRevoked, TransactionDone, PrefixRead, WatchChanges,
               KvFailure>
      what;
};

class KvStore {
 public:
  virtual ~KvStore() = default;

  // Never waits, and tells no event before it returns.
  virtual void Ask(KvAsk ask, KvRequest request) = 0;
};

}  // namespace troupe
