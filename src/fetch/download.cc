#include "fetch/download.h"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "base/bytes.h"

namespace troupe {
namespace {

constexpr std::size_t kLargestListing = std::size_t{64} << 20;
constexpr std::chrono::milliseconds kBetweenAsking{50};
// Of a file's first bytes that are looked at; headers of large models are a few MiB.
constexpr std::uint64_t kFirstLook = 1 << 20, kLastLook = 64 << 20;
using ReplyNext = ReplyVerdict::Next;

// False: `go_on` said no meanwhile.
bool WaitFor(double seconds, const std::function<bool()>& go_on) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
  while (std::chrono::steady_clock::now() < end) {
    if (go_on && !go_on()) return false;
    std::this_thread::sleep_for(kBetweenAsking);
  }
  return true;
}

// A connection that fails does not know what it was for.
Status About(Status why, const std::string& what) {
  return why.message().starts_with(what) ? why : std::move(why).WithContext(what);
}

Status Stopped() { return Error(Code::kCancelled, "stopped"); }

// The next request, or the end.
Status WaitToAskAgain(Patience& patience, const Status& why, const DownloadOptions& options,
                      const std::function<bool()>& go_on) {
  const std::optional<double> wait = patience.AfterFailure(why.retry_after());
  if (!wait) {
    if (why.retry_after() <= 0) return why;
    return Error(why.code(), "{}; it asks to come again in {:.0f} s", why.message(),
                 why.retry_after());
  }
  if (options.again) options.again(patience.next_try(), why);
  return WaitFor(*wait, go_on) ? OkStatus() : Stopped();
}

// One file on its way.
class FileTransfer {
 public:
  FileTransfer(WebClient& client, std::string what, std::string address, PartFile& part,
               std::uint64_t bytes, const DownloadOptions& options, DownloadCounts& counts)
      : client_(client),
        what_(std::move(what)),
        address_(std::move(address)),
        part_(part),
        bytes_(bytes),
        options_(options),
        counts_(counts),
        looks_(options.look && part.size() <= kLastLook) {}

  Status Run() {
    TROUPE_RETURN_IF_ERROR(LookAtWhatIsHere());
    Patience patience(options_.tries);
    std::uint64_t furthest = part_.size();
    while (part_.size() < bytes_) {
      const ReplyVerdict verdict = Ask();
      if (!refusal_.ok()) {
        TROUPE_RETURN_IF_ERROR(DoubtWhatWasHere());
        continue;
      }
      if (verdict.next == ReplyNext::kGiveUp) return verdict.why;
      if (part_.size() >= bytes_) break;
      ++counts_.again;
      if (part_.size() > furthest) patience.Progressed();
      furthest = std::max(furthest, part_.size());
      const Status why =
          verdict.next == ReplyNext::kComeAgain ? About(verdict.why, what_) : StoppedEarly();
      if (verdict.next == ReplyNext::kAskWhole) {
        ++counts_.anew;
        TROUPE_RETURN_IF_ERROR(StartAnew());
      }
      TROUPE_RETURN_IF_ERROR(WaitToAskAgain(patience, why, options_, [this] { return GoOn(); }));
    }
    return looks_ ? Accept() : OkStatus();
  }

 private:
  bool GoOn() const { return !options_.go_on || options_.go_on(part_.size()); }

  Status StoppedEarly() const {
    return Error(Code::kUnavailable, "{}: the server sends nothing after {} of {} bytes", what_,
                 part_.size(), bytes_);
  }

  ReplyVerdict Ask() {
    WebRequest request = {.address = address_, .token = options_.token, .headers = {}};
    const AskedFor asked = {.what = what_,
                            .bytes = bytes_,
                            .from = part_.size(),
                            .with_token = !options_.token.empty()};
    if (asked.from > 0) {
      request.headers.push_back(fmt::format("Range: bytes={}-", asked.from));
      if (IsStrongEtag(part_.etag())) request.headers.push_back("If-Range: " + part_.etag());
    }
    Status prepared;
    const auto judge = [&](const ReplyHead& head) {
      const ReplyVerdict verdict = JudgeReply(head, asked);
      prepared = Prepare(verdict.next, head, asked.from);
      if (!prepared.ok()) return ReplyVerdict{ReplyNext::kGiveUp, prepared};
      return verdict;
    };
    const auto take = [&](std::span<const std::byte> bytes) {
      counts_.fetched += bytes.size();
      TROUPE_RETURN_IF_ERROR(LookAt(bytes));
      return part_.Append(bytes);
    };
    return client_.Get(request, judge, take, [this] { return GoOn(); });
  }

  Status StartAnew() {
    looks_ = options_.look != nullptr;
    first_.clear();
    next_look_ = kFirstLook;
    was_here_ = false;
    return part_.StartAnew();
  }

  Status LookAtWhatIsHere() {
    if (!looks_) return Accept();
    if (part_.size() == 0) return OkStatus();
    was_here_ = true;
    TROUPE_ASSIGN_OR_RETURN(first_, part_.FirstBytes(part_.size()));
    const Status looked = LookAt({});
    return refusal_.ok() ? looked : DoubtWhatWasHere();
  }

  // What lay here may be damaged: only what comes now is refused for good.
  Status DoubtWhatWasHere() {
    if (!was_here_) {
      ++counts_.refused;
      return refusal_;
    }
    refusal_ = OkStatus();
    ++counts_.anew;
    return StartAnew();
  }

  Status LookAt(std::span<const std::byte> bytes) {
    if (!looks_) return OkStatus();
    first_.insert(first_.end(), bytes.begin(), bytes.end());
    if (first_.size() < std::min(next_look_, bytes_)) return OkStatus();
    const Result<bool> known = options_.look(first_);
    if (!known.ok()) return refusal_ = known.status();
    while (next_look_ <= first_.size()) next_look_ *= 2;
    if (!*known && next_look_ <= kLastLook) return OkStatus();
    looks_ = false;
    first_ = std::vector<std::byte>();  // its memory, too
    return Accept();
  }

  Status Accept() {
    if (options_.accepted) TROUPE_RETURN_IF_ERROR(options_.accepted());
    return part_.Reserve();
  }

  // Before the bytes of a reply come.
  Status Prepare(ReplyNext next, const ReplyHead& head, std::uint64_t from) {
    if (next == ReplyNext::kFromStart && from > 0) {
      ++counts_.anew;
      TROUPE_RETURN_IF_ERROR(StartAnew());
    }
    const bool wanted = next == ReplyNext::kFromStart || next == ReplyNext::kAppend;
    if (wanted && head.etag != part_.etag()) return part_.SetEtag(head.etag);
    return OkStatus();
  }

  WebClient& client_;
  const std::string what_, address_;
  PartFile& part_;
  const std::uint64_t bytes_;
  const DownloadOptions& options_;
  DownloadCounts& counts_;
  bool looks_;                    // what these bytes are is not known yet
  std::vector<std::byte> first_;  // of the file
  bool was_here_ = false;         // some of these, since before this call
  Status refusal_;                // of the look
  std::uint64_t next_look_ = kFirstLook;
};

}  // namespace

Status Download(WebClient& client, const std::string& what, const std::string& address,
                const std::string& path, const PulledFile& wanted, const DownloadOptions& options,
                DownloadCounts& counts) {
  for (bool first = true;; first = false) {
    TROUPE_ASSIGN_OR_RETURN(PartFile part, PartFile::Open(path, wanted));
    const std::uint64_t found = part.size();
    counts.found += found;
    TROUPE_RETURN_IF_ERROR(part.ReadAgain(options.go_on));
    FileTransfer transfer(client, what, address, part, wanted.bytes, options, counts);
    TROUPE_RETURN_IF_ERROR(transfer.Run());
    const Status finished = part.Finish();
    // What lay there may have been damaged; once more without it.
    if (finished.code() != Code::kDataLoss || found == 0 || !first) return finished;
    ++counts.anew;
  }
}

Result<std::string> GetText(WebClient& client, const std::string& what, const WebRequest& request,
                            const DownloadOptions& options) {
  Patience patience(options.tries);
  const auto go_on = [&] { return !options.go_on || options.go_on(0); };
  for (;;) {
    std::string text;
    const auto judge = [&](const ReplyHead& head) {
      return JudgeListing(head, what, !request.token.empty());
    };
    const auto take = [&](std::span<const std::byte> bytes) {
      if (bytes.size() > kLargestListing - text.size()) {
        return DataLoss("{}: what the server says of it is longer than {}", what,
                        ToString(Bytes(kLargestListing)));
      }
      text.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
      return OkStatus();
    };
    const ReplyVerdict verdict = client.Get(request, judge, take, go_on);
    if (verdict.next == ReplyNext::kFromStart) return text;
    if (verdict.next == ReplyNext::kGiveUp) return verdict.why;
    TROUPE_RETURN_IF_ERROR(WaitToAskAgain(patience, About(verdict.why, what), options, go_on));
  }
}

}  // namespace troupe
