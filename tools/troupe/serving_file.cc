#include "troupe/serving_file.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <system_error>

#include "base/json_value.h"
#include "io/text_file.h"
#include "troupe/remark.h"

namespace troupe {
namespace {

namespace fs = std::filesystem;

constexpr Bytes kMostBytes = 64_KiB;
constexpr std::uint64_t kMostPid = std::uint64_t{1} << 31, kMostTicks = ~std::uint64_t{0};

std::string StatPathOf(std::int64_t pid) { return "/proc/" + std::to_string(pid) + "/stat"; }

std::optional<std::uint64_t> StartTimeOf(std::int64_t pid) {
  std::ifstream file(StatPathOf(pid));
  return StartTimeIn(std::string(std::istreambuf_iterator<char>(file), {}));
}

// Empty where /proc does not say.
std::string OwnPids() {
  std::error_code ignored;
  return fs::read_symlink("/proc/self/ns/pid", ignored).string();
}

bool SameOwner(const std::string& a, const std::string& b) {
  struct stat first {
  }, second{};
  return ::lstat(a.c_str(), &first) == 0 && ::lstat(b.c_str(), &second) == 0 &&
         first.st_uid == second.st_uid;
}

// In /tmp anybody may make a folder of this name, or a link: it must be the user's own.
Status MakeFolder(const std::string& folder) {
  if (::mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST) {
    return ErrnoStatus(errno, folder);
  }
  struct stat found {};
  if (::lstat(folder.c_str(), &found) != 0) return ErrnoStatus(errno, folder);
  if (!S_ISDIR(found.st_mode) || found.st_uid != ::geteuid()) {
    return Error(Code::kPermissionDenied, "{}: no folder of this user's own", folder);
  }
  return OkStatus();
}

// Of this user and of servers that others have started as services or for themselves.
std::vector<std::string> ServingFolders() {
  std::vector<std::string> folders = {OwnServingFolder(), "/run/troupe"};
  const auto add_below = [&](const char* parent, std::string_view beginning, const char* behind) {
    std::error_code error;
    for (fs::directory_iterator at(parent, error), end; !error && at != end; at.increment(error)) {
      if (at->path().filename().string().starts_with(beginning)) {
        folders.push_back(at->path().string() + behind);
      }
    }
  };
  add_below("/run", "troupe-", "/troupe");
  add_below("/run/user", "", "/troupe");
  add_below("/tmp", "troupe-", "");
  std::ranges::sort(folders);
  folders.erase(std::unique(folders.begin(), folders.end()), folders.end());
  return folders;
}

}  // namespace

std::optional<std::uint64_t> StartTimeIn(std::string_view stat) {
  // The second field is the program's name in brackets, which may hold anything.
  const std::size_t bracket = stat.rfind(')');
  if (bracket == stat.npos) return std::nullopt;
  stat.remove_prefix(bracket + 1);
  constexpr int kFieldsBefore = 19;  // the third field to the 21st; the start is the 22nd
  for (int field = 0; field <= kFieldsBefore; ++field) {
    const std::size_t blank = stat.find(' ');
    if (blank == stat.npos) return std::nullopt;
    stat.remove_prefix(blank + 1);
  }
  std::uint64_t ticks = 0;
  const auto [end, error] = std::from_chars(stat.data(), stat.data() + stat.size(), ticks);
  if (error != std::errc() || end == stat.data()) return std::nullopt;
  return ticks;
}

std::string ServingText(const RunningServer& server) {
  return Json{{"pid", server.pid},
              {"start", server.start},
              {"pids", server.pids},
              {"model", server.facts.model},
              {"address", server.facts.address},
              {"memory_budget_bytes", server.facts.budget.count()}}
             .Dump(2) +
         "\n";
}

Result<RunningServer> ParseServing(const std::string& name, std::string_view text) {
  return ReadJson<RunningServer>(name, text, [](const JsonValue& json) {
    return RunningServer{.pid = static_cast<std::int64_t>(json.At("pid").Count(1, kMostPid)),
                         .start = json.At("start").Count(0, kMostTicks),
                         .pids = json.At("pids").String(),
                         .facts = {.model = json.At("model").String(),
                                   .address = json.At("address").String(),
                                   .budget = json.At("memory_budget_bytes").Size()}};
  });
}

std::string OwnServingFolder() {
  const char* const runtime = std::getenv("XDG_RUNTIME_DIR");
  if (runtime != nullptr && *runtime == '/') return std::string(runtime) + "/troupe";
  if (::geteuid() == 0) return "/run/troupe";
  return "/tmp/troupe-" + std::to_string(::geteuid());
}

ServingFile ServingFile::Announce(const ServingFacts& facts) {
  RunningServer self{.pid = ::getpid(),
                     .start = StartTimeOf(::getpid()).value_or(0),
                     .pids = OwnPids(),
                     .facts = facts};
  std::error_code ignored;
  const fs::path whole = fs::absolute(facts.model, ignored);  // who looks is in another folder
  if (!ignored) self.facts.model = whole.string();
  const std::string folder = OwnServingFolder();
  const std::string path = folder + "/" + std::to_string(self.pid) + ".json";
  Status written = MakeFolder(folder);
  if (written.ok()) written = WriteWholeText(path, ServingText(self));
  if (written.ok()) return ServingFile(path);
  Remark("troupe ps will not show this server: {}\n", written.message());
  return ServingFile("");
}

ServingFile::~ServingFile() {
  if (!path_.empty()) ::unlink(path_.c_str());
}

std::vector<RunningServer> FindServersIn(const std::string& folder) {
  std::vector<RunningServer> servers;
  std::error_code error;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    const std::string path = at->path().string();
    // Others may have put anything into their folders: a pipe would be waited for.
    if (!path.ends_with(".json") || !fs::is_regular_file(at->symlink_status(error))) continue;
    const Result<std::string> text = ReadWholeText(path, kMostBytes);
    if (!text.ok()) continue;
    const Result<RunningServer> server = ParseServing(path, *text);
    if (!server.ok() || server->pids != OwnPids()) continue;  // of another container's processes
    if (StartTimeOf(server->pid) != server->start) {
      ::unlink(path.c_str());  // of a process that is gone
    } else if (SameOwner(path, StatPathOf(server->pid))) {
      servers.push_back(*server);
    }
  }
  std::ranges::sort(servers, {}, &RunningServer::pid);
  return servers;
}

std::vector<RunningServer> FindServers() {
  std::vector<RunningServer> servers;
  for (const std::string& folder : ServingFolders()) {
    for (RunningServer& server : FindServersIn(folder)) servers.push_back(std::move(server));
  }
  std::ranges::sort(servers, {}, &RunningServer::pid);
  return servers;
}

}  // namespace troupe
