#include "cluster/etcd/etcd_messages.h"

#include <algorithm>
#include <utility>
#include <variant>
#include <vector>

#include "base/check.h"
#include "cluster/wire/wire_text.h"
#include "etcd_rpc.pb.h"

namespace troupe {
namespace {

namespace pb = etcdserverpb;

constexpr Nanos kNanosASecond = 1'000'000'000;

constexpr std::int64_t kLongestLease = 1'000'000'000;  // seconds: more cannot be told as Nanos

Nanos TimeToLive(std::int64_t seconds) {
  return std::clamp<std::int64_t>(seconds, 0, kLongestLease) * kNanosASecond;
}

KvEntry EntryOf(const pb::KeyValue& kv) {
  return {.key = kv.key(),
          .value = kv.value(),
          .created = kv.create_revision(),
          .modified = kv.mod_revision(),
          .lease = kv.lease()};
}

void AddCompare(const KvCompare& compare, pb::TxnRequest& request) {
  pb::Compare& added = *request.add_compare();
  added.set_result(pb::Compare::EQUAL);
  added.set_key(compare.key);
  switch (compare.what) {
    case KvCompare::What::kCreated:
      added.set_target(pb::Compare::CREATE);
      added.set_create_revision(compare.revision);
      break;
    case KvCompare::What::kModified:
      added.set_target(pb::Compare::MOD);
      added.set_mod_revision(compare.revision);
      break;
    case KvCompare::What::kValue:
      added.set_target(pb::Compare::VALUE);
      added.set_value(compare.value);
      break;
  }
}

KvEvent FailedWith(KvFault fault, const std::string& message) {
  return {.what = KvFailure{.fault = fault, .message = AsPeerText("etcd: " + message)}};
}

template <typename Response>
KvEvent EventOf(const Response& response, decltype(KvEvent::what) what) {
  return {.revision = response.header().revision(), .what = std::move(what)};
}

// What `read` makes of a Response.
template <typename Response, typename Read>
std::function<KvEvent(const std::string&)> Reader(Read read) {
  return [read = std::move(read)](const std::string& bytes) {
    Response response;
    if (!response.ParseFromString(bytes)) {
      return FailedWith(KvFault::kRefused, "an answer that is none of etcd's");
    }
    return read(response);
  };
}

EtcdRequest RequestOf(const GrantLease& grant) {
  pb::LeaseGrantRequest request;
  request.set_ttl((grant.ttl + kNanosASecond - 1) / kNanosASecond);
  return {.method = "/etcdserverpb.Lease/LeaseGrant",
          .bytes = request.SerializeAsString(),
          .read = Reader<pb::LeaseGrantResponse>([](const pb::LeaseGrantResponse& response) {
            return EventOf(response,
                           LeaseGranted{.lease = response.id(), .ttl = TimeToLive(response.ttl())});
          })};
}

EtcdRequest RequestOf(const KeepLease& keep) {
  pb::LeaseKeepAliveRequest request;
  request.set_id(keep.lease);
  return {
      .call = EtcdRequest::Call::kStreamOfOne,
      .method = "/etcdserverpb.Lease/LeaseKeepAlive",
      .bytes = request.SerializeAsString(),
      .read = Reader<pb::LeaseKeepAliveResponse>([](const pb::LeaseKeepAliveResponse& response) {
        if (response.ttl() <= 0) {
          return FailedWith(KvFault::kLeaseExpired, "the lease has expired");
        }
        return EventOf(response, LeaseKept{.ttl = TimeToLive(response.ttl())});
      })};
}

EtcdRequest RequestOf(const RevokeLease& revoke) {
  pb::LeaseRevokeRequest request;
  request.set_id(revoke.lease);
  return {.method = "/etcdserverpb.Lease/LeaseRevoke",
          .bytes = request.SerializeAsString(),
          .read = Reader<pb::LeaseRevokeResponse>([](const pb::LeaseRevokeResponse& response) {
            return EventOf(response, LeaseRevoked{});
          })};
}

// `then` and `otherwise` are the keys that were asked for: absent ones are missing in the answer.
KvEvent DoneFrom(const pb::TxnResponse& response, const std::vector<std::string>& then,
                 const std::vector<std::string>& otherwise) {
  TransactionDone done{.held = response.succeeded()};
  for (const std::string& key : done.held ? then : otherwise) done.entries.push_back({.key = key});
  std::size_t range = 0;
  for (const pb::ResponseOp& op : response.responses()) {
    if (!op.has_response_range() || range == done.entries.size()) continue;
    KvEntry& entry = done.entries[range++];
    for (const pb::KeyValue& kv : op.response_range().kvs()) {
      if (kv.key() == entry.key) entry = EntryOf(kv);
    }
  }
  return EventOf(response, std::move(done));
}

EtcdRequest RequestOf(const KvTransaction& transaction) {
  pb::TxnRequest request;
  for (const KvCompare& compare : transaction.compares) AddCompare(compare, request);
  for (const KvPut& put : transaction.puts) {
    pb::PutRequest& added = *request.add_success()->mutable_request_put();
    added.set_key(put.key);
    added.set_value(put.value);
    added.set_lease(put.lease);
  }
  for (const std::string& key : transaction.deletes) {
    request.add_success()->mutable_request_delete_range()->set_key(key);
  }
  for (const std::string& key : transaction.gets) {
    request.add_success()->mutable_request_range()->set_key(key);
  }
  for (const std::string& key : transaction.else_gets) {
    request.add_failure()->mutable_request_range()->set_key(key);
  }
  return {
      .method = "/etcdserverpb.KV/Txn",
      .bytes = request.SerializeAsString(),
      .read = Reader<pb::TxnResponse>(
          [then = transaction.gets, otherwise = transaction.else_gets](
              const pb::TxnResponse& response) { return DoneFrom(response, then, otherwise); })};
}

EtcdRequest RequestOf(const ReadPrefix& read) {
  pb::RangeRequest request;
  request.set_key(read.prefix);
  request.set_range_end(EndOfPrefix(read.prefix));
  request.set_keys_only(read.keys_only);
  return {.method = "/etcdserverpb.KV/Range",
          .bytes = request.SerializeAsString(),
          .read = Reader<pb::RangeResponse>([](const pb::RangeResponse& response) {
            PrefixRead found;
            for (const pb::KeyValue& kv : response.kvs()) found.entries.push_back(EntryOf(kv));
            std::ranges::sort(found.entries, {}, &KvEntry::key);
            return EventOf(response, std::move(found));
          })};
}

KvEvent ChangesFrom(const pb::WatchResponse& response) {
  if (response.compact_revision() > 0) {
    return FailedWith(KvFault::kCompacted, "the revision to watch from is compacted");
  }
  if (response.canceled()) {
    return FailedWith(KvFault::kUnavailable, "the watch is ended: " + response.cancel_reason());
  }
  WatchChanges changes;
  for (const pb::Event& event : response.events()) {
    changes.changes.push_back(
        {.entry = EntryOf(event.kv()), .deleted = event.type() == pb::Event::DELETE});
  }
  return EventOf(response, std::move(changes));
}

EtcdRequest RequestOf(const WatchPrefix& watch) {
  pb::WatchRequest request;
  pb::WatchCreateRequest& create = *request.mutable_create_request();
  create.set_key(watch.prefix);
  create.set_range_end(EndOfPrefix(watch.prefix));
  create.set_start_revision(watch.from);
  return {.call = EtcdRequest::Call::kStreamOfMany,
          .method = "/etcdserverpb.Watch/Watch",
          .bytes = request.SerializeAsString(),
          .read = Reader<pb::WatchResponse>(ChangesFrom)};
}

EtcdRequest RequestOf(const EndWatch&) {
  TROUPE_CHECK(false);
  return {};
}

}  // namespace

EtcdRequest ToEtcd(const KvRequest& request) {
  return std::visit([](const auto& asked) { return RequestOf(asked); }, request);
}

std::string EndOfPrefix(std::string prefix) {
  while (!prefix.empty() && static_cast<unsigned char>(prefix.back()) == 0xff) prefix.pop_back();
  if (prefix.empty()) return std::string(1, '\0');  // etcd's name for the end of all keys
  ++prefix.back();
  return prefix;
}

}  // namespace troupe
