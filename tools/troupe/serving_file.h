// How `troupe ps` finds servers: each keeps a small file while it runs, in a folder of its user.
// What a server is doing is asked of itself (cmd_ps.cc).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/status.h"

namespace troupe {

struct ServingFacts {
  std::string model, address;  // "http://127.0.0.1:8080"
  Bytes budget;

  bool operator==(const ServingFacts&) const = default;
};

struct RunningServer {
  std::int64_t pid = 0;
  std::uint64_t start = 0;  // of the process, in ticks since the machine started
  std::string pids;         // whose pid it is: "pid:[4026531836]", the namespace of a container
  ServingFacts facts;

  bool operator==(const RunningServer&) const = default;
};
std::string ServingText(const RunningServer& server);
Result<RunningServer> ParseServing(const std::string& name, std::string_view text);

// Of a /proc/PID/stat: when the process started; none if it is no such text.
std::optional<std::uint64_t> StartTimeIn(std::string_view stat);

// $XDG_RUNTIME_DIR/troupe, else /run/troupe for root, else /tmp/troupe-UID.
std::string OwnServingFolder();

// The file of this process: there from Announce to the end of this value.
class ServingFile {
 public:
  // A server runs without it as well: where it cannot be written, that is a remark.
  static ServingFile Announce(const ServingFacts& facts);

  ServingFile(ServingFile&& other) noexcept : path_(std::move(other.path_)) { other.path_.clear(); }
  ServingFile& operator=(ServingFile&&) = delete;
  ~ServingFile();

  const std::string& path() const { return path_; }  // empty: it could not be written

 private:
  explicit ServingFile(std::string path) : path_(std::move(path)) {}
  std::string path_;
};

// Those that run and whose files this user may read, in the order of their pids. Files that a
// killed server has left are removed, where that is allowed.
std::vector<RunningServer> FindServers();
// The same of one folder.
std::vector<RunningServer> FindServersIn(const std::string& folder);

}  // namespace troupe
