// A real etcd for tests, in a folder of its own and on ports that were free: started, killed,
// stopped, continued, and controlled by etcdctl.
#pragma once

#include <arpa/inet.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/rng.h"
#include "cluster/etcd/etcd_store.h"
#include "testing/temp_folder.h"

namespace troupe {

// What it writes goes to the end of `log`.
inline pid_t SpawnForTest(std::vector<std::string> command, const std::string& log) {
  std::vector<char*> arguments;
  for (std::string& word : command) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 1, log.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600);
  posix_spawn_file_actions_adddup2(&actions, 1, 2);
  pid_t pid = -1;
  const int error = posix_spawnp(&pid, arguments[0], &actions, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  TROUPE_CHECK(error == 0);
  return pid;
}

// Whether it ended well; `log` has what it wrote.
inline bool RunForTest(std::vector<std::string> command, const std::string& log) {
  const pid_t pid = SpawnForTest(std::move(command), log);
  int status = -1;
  return waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

// Below those that the kernel gives to clients: one of them that tries to reach an etcd which is
// gone could get its port, and connect to itself.
inline int FreePortForTest() {
  static Rng rng(static_cast<std::uint64_t>(getpid()));
  while (true) {
    const int port = 10000 + static_cast<int>(rng.Below(20000));
    const UniqueFd fd(socket(AF_INET, SOCK_STREAM, 0));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<std::uint16_t>(port));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (bind(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) == 0) return port;
  }
}

// Asks one thing after the other and waits for the answers.
class AskingClient {
 public:
  explicit AskingClient(const EtcdOptions& options)
      : store_(EtcdStore::Open(options, [this](const KvEvent& event) {
                 const std::lock_guard lock(mu_);
                 told_.push_back(event);
                 came_.notify_all();
               }).value()) {}

  KvAsk Begin(KvRequest request) {
    store_->Ask(++last_, std::move(request));
    return last_;
  }
  // The next event of this ask; a failure saying "nothing came" after `seconds`.
  KvEvent Next(KvAsk ask, double seconds = 10) {
    std::unique_lock lock(mu_);
    KvEvent next{.what = KvFailure{.message = "nothing came"}};
    came_.wait_for(lock, std::chrono::duration<double>(seconds), [&] {
      for (auto event = told_.begin(); event != told_.end(); ++event) {
        if (event->ask != ask) continue;
        next = *event;
        told_.erase(event);
        return true;
      }
      return false;
    });
    return next;
  }
  KvEvent Ask(KvRequest request) { return Next(Begin(std::move(request))); }

 private:
  std::mutex mu_;
  std::condition_variable came_;
  std::deque<KvEvent> told_;
  KvAsk last_ = 0;
  std::unique_ptr<EtcdStore> store_;
};

class EtcdServer {
 public:
  static bool IsInstalled() {
    const TempFolder folder;
    return RunForTest({"sh", "-c", "command -v etcd && command -v etcdctl"}, folder.PathOf("log"));
  }

  // `extra` are more of etcd's options.
  explicit EtcdServer(EtcdTls tls = {}, std::vector<std::string> extra = {})
      : tls_(std::move(tls)), extra_(std::move(extra)), data_(folder_.PathOf("data")) {
    Start();
  }
  ~EtcdServer() { Kill(); }
  EtcdServer(const EtcdServer&) = delete;
  EtcdServer& operator=(const EtcdServer&) = delete;

  EtcdOptions options() const { return {.endpoints = {Endpoint()}, .tls = tls_}; }
  std::string Endpoint() const { return "127.0.0.1:" + std::to_string(port_); }
  std::string PathOf(std::string_view name) const { return folder_.PathOf(name); }
  void set_data(std::string path) { data_ = std::move(path); }

  void Start() {
    const std::string scheme = tls_.enabled() ? "https://" : "http://";
    std::vector<std::string> command = {
        "setpriv", "--pdeathsig", "KILL",  // a test that crashes leaves none behind
        "etcd", "--name", "test", "--data-dir", data_, "--listen-client-urls", scheme + Endpoint(),
        "--advertise-client-urls", scheme + Endpoint(), "--listen-peer-urls", PeerUrl(),
        "--initial-advertise-peer-urls", PeerUrl(), "--initial-cluster", "test=" + PeerUrl(),
        // Short ones, so that leases of a second are granted.
        "--heartbeat-interval", "50", "--election-timeout", "500"};
    command.insert(command.end(), extra_.begin(), extra_.end());
    pid_ = SpawnForTest(std::move(command), PathOf("etcd.log"));
    AskingClient client(options());
    const Stopwatch watch;
    while (watch.Seconds() < 30 && IsRunning()) {
      if (std::holds_alternative<PrefixRead>(client.Ask(ReadPrefix{.prefix = "/"}).what)) return;
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
    ADD_FAILURE() << "etcd does not come up:\n" << folder_.Read("etcd.log");
  }
  void Kill() {
    if (pid_ < 0) return;
    kill(pid_, SIGKILL);
    int status = 0;
    waitpid(std::exchange(pid_, -1), &status, 0);
  }
  void Stop() {
    if (pid_ < 0) return;
    kill(pid_, SIGSTOP);
    int status = 0;
    waitpid(pid_, &status, WUNTRACED);  // it may answer until then
  }
  void Continue() {
    if (pid_ > 0) kill(pid_, SIGCONT);
  }

  void Control(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {"etcdctl", "--endpoints", Endpoint()});
    EXPECT_TRUE(RunForTest(std::move(arguments), PathOf("etcdctl.log")))
        << folder_.Read("etcdctl.log");
  }
  void RestoreFrom(const std::string& snapshot, const std::string& data) {
    Control({"snapshot", "restore", snapshot, "--data-dir", data, "--name", "test",
             "--initial-cluster", "test=" + PeerUrl(), "--initial-advertise-peer-urls", PeerUrl()});
    set_data(data);
  }

 private:
  bool IsRunning() {
    int status = 0;
    if (waitpid(pid_, &status, WNOHANG) == pid_) pid_ = -1;
    return pid_ > 0;
  }
  std::string PeerUrl() const { return "http://127.0.0.1:" + std::to_string(peer_port_); }

  const TempFolder folder_;
  const int port_ = FreePortForTest(), peer_port_ = FreePortForTest();
  const EtcdTls tls_;
  const std::vector<std::string> extra_;
  std::string data_;
  pid_t pid_ = -1;
};

}  // namespace troupe
