// Gets one file by its address: goes on with what is there, asks again when a connection fails, and
// gives the file its name once it is whole and hashes to what was listed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>

#include "base/status.h"
#include "fetch/part_file.h"
#include "fetch/plan/pull_record.h"
#include "fetch/web_client.h"

namespace troupe {

struct DownloadOptions {
  std::string token;
  int tries = 5;  // in a row without a byte more
  // Bytes of the file that are there. No: stop, with kCancelled, and keep what is there.
  std::function<bool(std::uint64_t here)> go_on;
  // Told why before a request that failed is waited for and made again: the second try, the third.
  std::function<void(int next_try, const Status& why)> again;
  // Asked of the first bytes of a file, of those that an earlier try has left as well, and again
  // with twice as many until it knows (true). Its error ends the download.
  std::function<Result<bool>(std::span<const std::byte> first)> look;
  // Told, once or more, that `look` has nothing against the file: before the disk's space for all
  // of it is taken. Its error ends the download.
  std::function<Status()> accepted;
};

struct DownloadCounts {
  std::uint64_t fetched = 0;  // bytes that came
  std::uint64_t found = 0;    // bytes that were there, of earlier tries
  std::uint64_t again = 0;    // requests after one that failed
  std::uint64_t anew = 0;     // files begun again, as what was there was of another
  std::uint64_t refused = 0;  // files that `look` ended
};

// `what` names the file in errors; `path` is where it goes, in a folder that exists.
Status Download(WebClient& client, const std::string& what, const std::string& address,
                const std::string& path, const PulledFile& wanted, const DownloadOptions& options,
                DownloadCounts& counts);

// The text behind an address, of at most `most`, under the same rules.
Result<std::string> GetText(WebClient& client, const std::string& what, const WebRequest& request,
                            const DownloadOptions& options);

}  // namespace troupe
