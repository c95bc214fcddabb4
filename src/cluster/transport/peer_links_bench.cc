// What a round trip between two nodes costs over the loopback: as calls are, 2 KiB there and 8 KiB
// back, and of a byte each way; against the same over a bare TCP connection, and against a bare
// stream of gRPC with empty messages. Each end answers on the thread that got the frame, so the
// differences are what gRPC and the link add. The peer is another process: nodes of one process
// share gRPC's poller, which hands their events to and fro. `p50_us` is the median, CPU this end's.
// --benchmark_filter=Large shows the speed of frames of some MiB.
#include <arpa/inet.h>
#include <benchmark/benchmark.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>
#include <future>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/fd.h"
#include "cluster/transport/echo_process_for_test.h"
#include "cluster/transport/grpc_ping_for_test.h"
#include "cluster/transport/peer_links.h"

namespace troupe {
namespace {

constexpr std::size_t kThere = 2 << 10, kBack = 8 << 10;
constexpr int kEachTime = 2000;  // round trips

void ReportMedian(benchmark::State& state, std::vector<Nanos>& times) {
  if (times.empty()) return;
  std::ranges::nth_element(times, times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2));
  state.counters["p50_us"] = static_cast<double>(times[times.size() / 2]) * 1e-3;
}

// Asks `times` times, each time as soon as the answer to the last one is there.
class Asking final : public LinkEvents {
 public:
  Asking(PeerLinks& links, std::size_t bytes) : links_(links), bytes_(bytes) {}
  void OnOpened(LinkId, const PeerIdentity&) override { opened_.set_value(); }
  void OnFrame(LinkId link, std::span<const std::byte>) override {
    const Nanos now = clock_.Now();
    times_.push_back(now - asked_);
    if (--left_ == 0) return done_.set_value();
    Ask(link);
  }
  void OnClosed(LinkId, const Status&) override {}
  void OnUnreachable(LinkId, const Status&) override {}

  void WaitOpened() { opened_.get_future().wait(); }
  void Run(LinkId link, int times) {
    left_ = times;
    done_ = {};
    Ask(link);
    done_.get_future().wait();
  }
  std::vector<Nanos>& times() { return times_; }

 private:
  void Ask(LinkId link) {
    asked_ = clock_.Now();
    (void)links_.Send(link, Frame(bytes_));
  }

  PeerLinks& links_;
  std::size_t bytes_;
  MonotonicClock clock_;
  Nanos asked_ = 0;
  int left_ = 0;
  std::vector<Nanos> times_;
  std::promise<void> opened_, done_;
};

void AskOverLinks(benchmark::State& state, std::size_t there, std::size_t back, int each_time) {
  EchoProcess peer(0, back);
  const std::uint16_t port = peer.ReadPort();
  const auto links = PeerLinks::Listen({});
  if (port == 0 || !links.ok()) return state.SkipWithError("cannot listen");
  Asking asking(**links, there);
  (*links)->Start(asking);
  const LinkId link = (*links)->Dial("127.0.0.1:" + std::to_string(port)).value();
  asking.WaitOpened();
  asking.Run(link, 10);
  asking.times().clear();
  for (auto _ : state) asking.Run(link, each_time);
  ReportMedian(state, asking.times());
  state.SetItemsProcessed(state.iterations() * each_time);
  state.SetBytesProcessed(state.iterations() * each_time * static_cast<std::int64_t>(there + back));
}

void BM_RoundTripOfLinks(benchmark::State& state) {
  AskOverLinks(state, static_cast<std::size_t>(state.range(0)),
               static_cast<std::size_t>(state.range(1)), kEachTime);
}

void BM_RoundTripOfBareGrpc(benchmark::State& state) {
  EchoProcess peer(0, 0, "grpc_echo");
  const std::uint16_t port = peer.ReadPort();
  if (port == 0) return state.SkipWithError("cannot listen");
  GrpcPing ping(port);
  std::vector<Nanos> times;
  if (!ping.Run(10, times)) return state.SkipWithError("cannot connect");
  times.clear();
  for (auto _ : state) {
    if (!ping.Run(kEachTime, times)) return state.SkipWithError("the other end is gone");
  }
  ReportMedian(state, times);
  state.SetItemsProcessed(state.iterations() * kEachTime);
}

void BM_LargeFramesOfLinks(benchmark::State& state) {
  AskOverLinks(state, static_cast<std::size_t>(state.range(0)) << 20, 1, 10);
}

bool MoveAll(int fd, std::vector<char>& bytes, bool out) {
  for (std::size_t done = 0; done < bytes.size();) {
    const ssize_t moved = out ? ::send(fd, bytes.data() + done, bytes.size() - done, MSG_NOSIGNAL)
                              : ::recv(fd, bytes.data() + done, bytes.size() - done, 0);
    if (moved <= 0) return false;
    done += static_cast<std::size_t>(moved);
  }
  return true;
}

void BM_RoundTripOfBareTcp(benchmark::State& state) {
  const UniqueFd listening(::socket(AF_INET, SOCK_STREAM, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  auto* const any = reinterpret_cast<sockaddr*>(&address);
  if (::bind(listening.get(), any, size) != 0 || ::listen(listening.get(), 1) != 0 ||
      ::getsockname(listening.get(), any, &size) != 0) {
    return state.SkipWithError("cannot listen");
  }
  UniqueFd asking(::socket(AF_INET, SOCK_STREAM, 0));
  if (::connect(asking.get(), any, size) != 0) return state.SkipWithError("cannot connect");
  const UniqueFd answering(::accept(listening.get(), nullptr, nullptr));
  const int yes = 1;
  for (const int fd : {asking.get(), answering.get()}) {
    ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
  }
  const auto there_bytes = static_cast<std::size_t>(state.range(0));
  const auto back_bytes = static_cast<std::size_t>(state.range(1));
  std::thread peer([fd = answering.get(), there_bytes, back_bytes] {
    std::vector<char> there(there_bytes), back(back_bytes);
    while (MoveAll(fd, there, false) && MoveAll(fd, back, true)) {
    }
  });
  const MonotonicClock clock;
  std::vector<Nanos> times;
  std::vector<char> there(there_bytes), back(back_bytes);
  for (auto _ : state) {
    for (int i = 0; i < kEachTime; ++i) {
      const Nanos asked = clock.Now();
      MoveAll(asking.get(), there, true);
      MoveAll(asking.get(), back, false);
      times.push_back(clock.Now() - asked);
    }
  }
  ReportMedian(state, times);
  state.SetItemsProcessed(state.iterations() * kEachTime);
  asking.Reset();
  peer.join();
}

// Bytes there and back.
void Sizes(benchmark::internal::Benchmark* benchmark) {
  benchmark->ArgNames({"there", "back"})->Args({1, 1})->Args({kThere, kBack});
  benchmark->UseRealTime()->MeasureProcessCPUTime();
}

BENCHMARK(BM_RoundTripOfLinks)->Apply(Sizes);
BENCHMARK(BM_RoundTripOfBareTcp)->Apply(Sizes);
BENCHMARK(BM_RoundTripOfBareGrpc)->UseRealTime()->MeasureProcessCPUTime();
BENCHMARK(BM_LargeFramesOfLinks)
    ->ArgName("mib")
    ->Arg(1)
    ->Arg(8)
    ->Arg(64)
    ->UseRealTime()
    ->MeasureProcessCPUTime();

}  // namespace
}  // namespace troupe
