// The prefix cache in a file (docs/formats/prefixes.md), so that what one run has read is there for
// the next. What keys, values and states belong to is the caller's to say, and to check: here they
// are bytes.
#pragma once

#include <cstddef>
#include <functional>
#include <string>

#include "base/status.h"
#include "model/kv_pool.h"
#include "runtime/kept_states.h"
#include "runtime/prefix_cache.h"
#include "store/model_fingerprint.h"

namespace troupe {

// What is kept of texts.
struct KeptTexts {
  PrefixCache& prefixes;
  KeptStates& states;  // stay empty where the pool has none
  KvPool& pool;
};

struct PrefixFileReport {
  std::size_t pages = 0;     // in the cache now
  std::size_t left_out = 0;  // in the file, and the pool has no room
  std::size_t states = 0;    // kept now
  std::string path;
};

// Asked between pages, of which a file may have gigabytes: an error ends the work and is returned.
using MayGoOn = std::function<Status()>;

// The file appears complete or not at all, for its user alone: it holds what requests said. `go_on`
// is asked once more when all is written, before the file gets its name.
Status WritePrefixes(const std::string& path, const ModelFingerprint& model, const KeptTexts& kept,
                     const MayGoOn& go_on = {});

// Fills what is empty; on an error it stays so. kNotFound: there is no file. kAlreadyExists: it
// is of another model, or no file of prefixes. kFailedPrecondition: of another KV type or version.
// kDataLoss: it is damaged.
Result<PrefixFileReport> ReadPrefixes(const std::string& path, const ModelFingerprint& model,
                                      const KeptTexts& kept, const MayGoOn& go_on = {});

}  // namespace troupe
