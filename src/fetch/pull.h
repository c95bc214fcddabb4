// `troupe pull`: finds out which files a name means, and gets those that are not here yet.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>

#include "base/bytes.h"
#include "base/status.h"
#include "fetch/download.h"
#include "fetch/fetch_settings.h"
#include "fetch/model_folder.h"
#include "fetch/plan/model_name.h"
#include "fetch/web_client.h"

namespace troupe {

struct PullOptions {
  FetchSettings settings;
  int tries = 5;
  // What is to be got is known, and `here` of it lies here already.
  std::function<void(const PulledModel&, Bytes here)> begun;
  // No: stop, and keep what is there.
  std::function<bool(Bytes here, Bytes size)> go_on;
  // Told before a request is made again, as DownloadOptions has it.
  std::function<void(int next_try, const Status& why)> again;
  // Asked whether a file is worth the rest of it, as DownloadOptions has it; `what` is its name. Of
  // a file that it refuses, and of a model that begins with one, nothing is left; an older
  // version of the model stays.
  std::function<Result<bool>(const std::string& what, std::span<const std::byte> first,
                             std::uint64_t bytes)>
      look;
};

struct PullReport {
  PulledModel model;
  std::uint64_t files_found = 0;  // that were whole before
  std::uint64_t unchecked = 0;    // files of which nobody said a checksum
  DownloadCounts downloads;
  WebCounts web;
};

// kUnavailable: it could not be got now; what came stays, and the same call goes on.
Result<PullReport> Pull(const ModelName& name, const PullOptions& options);

}  // namespace troupe
