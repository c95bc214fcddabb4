// echo_peer, a node in a process of its own, for tests and benchmarks, or another such program. It
// lies beside theirs.
#pragma once

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>

#include "base/check.h"
#include "base/fd.h"

namespace troupe {

class EchoProcess {
 public:
  explicit EchoProcess(std::uint16_t port = 0, std::size_t answer_bytes = 0,
                       const char* name = "echo_peer") {
    int ends[2];
    TROUPE_CHECK(::pipe2(ends, O_CLOEXEC) == 0);
    const UniqueFd write_end(ends[1]);
    output_.Reset(ends[0]);
    posix_spawn_file_actions_t actions;
    ::posix_spawn_file_actions_init(&actions);
    ::posix_spawn_file_actions_adddup2(&actions, write_end.get(), STDOUT_FILENO);
    std::string program = std::filesystem::read_symlink("/proc/self/exe").replace_filename(name);
    std::string wanted = std::to_string(port);
    std::string bytes = std::to_string(answer_bytes);
    char* const words[] = {program.data(), wanted.data(), bytes.data(), nullptr};
    TROUPE_CHECK(::posix_spawn(&pid_, program.c_str(), &actions, nullptr, words, environ) == 0);
    ::posix_spawn_file_actions_destroy(&actions);
  }
  ~EchoProcess() {
    if (pid_ > 0) Kill();
  }

  // 0: it did not start.
  std::uint16_t ReadPort() {
    std::string line;
    char byte = 0;
    pollfd ready{.fd = output_.get(), .events = POLLIN, .revents = 0};
    while (!line.ends_with('\n') && ::poll(&ready, 1, 20'000) == 1 &&
           ::read(output_.get(), &byte, 1) == 1) {
      line += byte;
    }
    return line.empty() ? 0 : static_cast<std::uint16_t>(std::stoi(line));
  }
  void Signal(int signal) const { ::kill(pid_, signal); }
  void Kill() {
    Signal(SIGKILL);
    ::waitpid(std::exchange(pid_, -1), nullptr, 0);
  }

 private:
  pid_t pid_ = -1;
  UniqueFd output_;
};

}  // namespace troupe
