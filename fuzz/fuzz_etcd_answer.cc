// Any bytes as etcd's answer to each of the requests, the first byte says to which: an event whose
// times and texts are such that the cluster can go by them, or a failure in one line.
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <variant>

#include "base/check.h"
#include "cluster/etcd/etcd_messages.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace troupe;
  static const std::array<EtcdRequest, 6> kRequests = {
      ToEtcd(GrantLease{}),     ToEtcd(KeepLease{}),
      ToEtcd(RevokeLease{}),    ToEtcd(KvTransaction{.gets = {"a", "b"}, .else_gets = {"c"}}),
      ToEtcd(ReadPrefix{"a/"}), ToEtcd(WatchPrefix{.prefix = "a/", .from = 1})};
  if (size == 0) return 0;
  const std::string answer(reinterpret_cast<const char*>(data) + 1, size - 1);
  const KvEvent event = kRequests[data[0] % kRequests.size()].read(answer);
  if (const auto* failure = std::get_if<KvFailure>(&event.what)) {
    TROUPE_CHECK(!failure->message.empty());
    TROUPE_CHECK(failure->message.find('\n') == std::string::npos);
  } else if (const auto* granted = std::get_if<LeaseGranted>(&event.what)) {
    TROUPE_CHECK(granted->ttl >= 0);
  } else if (const auto* kept = std::get_if<LeaseKept>(&event.what)) {
    TROUPE_CHECK(kept->ttl > 0);
  } else if (const auto* done = std::get_if<TransactionDone>(&event.what)) {
    TROUPE_CHECK(done->entries.size() == (done->held ? 2u : 1u));
    TROUPE_CHECK(done->entries[0].key == (done->held ? "a" : "c"));
  }
  return 0;
}
