#include "troupe/server_watch.h"

#include <arpa/inet.h>
#include <unistd.h>

#include <fstream>

#include "base/clock.h"
#include "server/http/http_client.h"
#include "troupe/metrics_text.h"

namespace troupe {
namespace {

constexpr std::chrono::milliseconds kLongestAnswer{1000};
constexpr std::size_t kLongestPage = 4 << 20;

std::optional<Bytes> ResidentMemoryOf(std::int64_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/statm");
  std::uint64_t all = 0, resident = 0;
  if (!(file >> all >> resident)) return std::nullopt;
  return Bytes(resident * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE)));
}

// The file may be a stranger's: no name is looked up for it, which could take any time.
bool IsNumericOrLocal(const std::string& host) {
  in6_addr address;
  return host == "localhost" || ::inet_pton(AF_INET, host.c_str(), &address) == 1 ||
         ::inet_pton(AF_INET6, host.c_str(), &address) == 1;
}

struct Look {
  std::string page;  // empty: none was given
  double at = 0;
  bool wants_key = false;
};

std::vector<Look> LookAtAll(std::span<const RunningServer> servers) {
  static const Stopwatch watch;
  // Of this machine, and told no secret: which certificate it has does not matter.
  HttpClient client({.any_certificate = true, .whole = kLongestAnswer});
  std::vector<Look> looks(servers.size());
  std::vector<int> statuses(servers.size());
  for (std::size_t i = 0; i < servers.size(); ++i) {
    const Result<HttpUrl> url = ParseHttpUrl(AddressToAsk(servers[i].facts.address));
    if (!url.ok() || !IsNumericOrLocal(url->host)) continue;
    client.Start(*url, {.method = "GET", .path = "/metrics"},
                 {.on_head = [&, i](const HttpResponse& head) { statuses[i] = head.status; },
                  .on_piece =
                      [&, i](std::string_view piece) {
                        if (looks[i].page.size() < kLongestPage) looks[i].page += piece;
                      },
                  .on_end =
                      [&, i](const Status& status) {
                        looks[i].at = watch.Seconds();
                        looks[i].wants_key = status.ok() && statuses[i] == 401;
                        if (!status.ok() || statuses[i] != 200) looks[i].page.clear();
                      }});
  }
  client.Run();
  return looks;
}

void Wait(std::chrono::milliseconds time) {
  HttpClient clock({});
  clock.After(time, [] {});
  clock.Run();
}

}  // namespace

std::string AddressToAsk(const std::string& address) {
  for (const auto& [all, here] :
       {std::pair<std::string_view, std::string_view>{"://0.0.0.0:", "://127.0.0.1:"},
        {"://[::]:", "://[::1]:"}}) {
    if (const std::size_t at = address.find(all); at != address.npos) {
      return std::string(address).replace(at, all.size(), here);
    }
  }
  return address;
}

std::vector<ServerActivity> WatchServers(std::span<const RunningServer> servers,
                                         std::chrono::milliseconds between) {
  if (servers.empty()) return {};
  const std::vector<Look> before = LookAtAll(servers);
  Wait(between);
  const std::vector<Look> after = LookAtAll(servers);
  std::vector<ServerActivity> all(servers.size());
  for (std::size_t i = 0; i < servers.size(); ++i) {
    const auto tokens = [&](const Look& look) {
      return MetricIn(look.page, "troupe_tokens_total", "kind=\"generated\"");
    };
    all[i].resident = ResidentMemoryOf(servers[i].pid);
    all[i].wants_key = after[i].wants_key;
    all[i].requests = MetricIn(after[i].page, "troupe_requests_now");
    const std::optional<double> first = tokens(before[i]), second = tokens(after[i]);
    const double seconds = after[i].at - before[i].at;
    // A reload between the two looks began the count anew.
    if (first && second && *second >= *first && seconds > 0) {
      all[i].tokens_per_second = (*second - *first) / seconds;
    }
  }
  return all;
}

}  // namespace troupe
