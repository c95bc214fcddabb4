// What exact requests leave in a model's prefix cache, kept in a file from one run to the next
// (prefix_file.h): which file that is, whether what it holds may be used, and when it is written.
// Threads: one at a time, the engine's.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/status.h"
#include "io/file.h"
#include "runtime/engine.h"
#include "runtime/kept_states.h"
#include "runtime/prefix_cache.h"
#include "runtime/prefix_file.h"
#include "runtime/session.h"

namespace troupe {

class KeptPrefixes {
 public:
  // All must outlive it. Cache and states are the engine's, of requests that want exactness.
  KeptPrefixes(Engine& engine, PrefixCache& cache, KeptStates& states)
      : engine_(engine), cache_(cache), states_(states) {}

  // `path` is a file, or a folder in which each model and type of keys and values has a file of its
  // own: REQUIRES that the engine was opened with EngineOptions::fingerprint.

  // Fills the empty cache, if some tokens, computed anew, come to the same bytes as in the file.
  // Fails as ReadPrefixes does; kFailedPrecondition: they do not.
  Result<PrefixFileReport> Load(const std::string& path, const MayGoOn& go_on = {});
  // Writes the file unless it holds what the cache does, or that is nothing. kAlreadyExists: the
  // file is not the one that was read or written here last, nor one that is of no use to anybody,
  // so it is left alone.
  Status Save(const std::string& path, const MayGoOn& go_on = {});

 private:
  // A file that may be replaced, as it was when it was read or written.
  struct Known {
    std::string path;
    std::optional<FileIdentity> file;  // absent: there was none, or it may not be replaced
    std::uint64_t changes = 0;         // of cache and states, then
  };

  Result<std::string> FileFor(const std::string& path) const;
  Status MayReplace(const std::string& path) const;
  Status Check(const std::string& path, const MayGoOn& go_on);
  Status CheckPages(const std::string& path, const MayGoOn& go_on);
  Status CheckState(const std::string& path);
  // Reads them behind what it has; the room is there.
  Status Compute(Session& session, TokenIds tokens);
  Status CheckTile(const std::string& path, TokenIds before, TokenIds tile, const KvPage& page);

  KeptTexts texts() { return {.prefixes = cache_, .states = states_, .pool = engine_.kv()}; }
  std::uint64_t changes() const { return cache_.changes() + states_.changes(); }

  Engine& engine_;
  PrefixCache& cache_;
  KeptStates& states_;
  Known known_;
};

}  // namespace troupe
