// Asks servers of the web by GET, by way of libcurl: one request after the other, over connections
// that stay open. Proxies are those of the environment (HTTPS_PROXY, NO_PROXY …), certificates
// those of the system. Redirects are followed here, so that a token never goes to another host.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "fetch/plan/reply_verdict.h"

namespace troupe {

struct WebRequest {
  std::string address;
  std::string token;                 // told to the address's own origin alone; empty: none
  std::vector<std::string> headers;  // "Range: bytes=5-"
};

// What happened so far, for reports and tests.
struct WebCounts {
  std::uint64_t requests = 0;
  std::uint64_t redirects = 0;
};

class WebClient {
 public:
  // kAppend, kFromStart: the bytes that follow are wanted.
  using Judge = std::function<ReplyVerdict(const ReplyHead&)>;
  using Take = std::function<Status(std::span<const std::byte>)>;

  static Result<WebClient> Create();
  WebClient(WebClient&&) noexcept;
  WebClient& operator=(WebClient&&) noexcept;
  ~WebClient();

  // `judge` is asked once a reply's head is there, and its verdict is the result. `take` gets the
  // bytes if they are wanted; its error ends the request. A connection that fails is kComeAgain.
  // kGiveUp with kCancelled: `go_on` said no.
  ReplyVerdict Get(const WebRequest& request, const Judge& judge, const Take& take,
                   const std::function<bool()>& go_on);

  const WebCounts& counts() const { return counts_; }

 private:
  struct Handle;
  struct Transfer;

  explicit WebClient(std::unique_ptr<Handle> handle);
  ReplyVerdict GetOnce(const WebRequest& request, Transfer& transfer);

  std::unique_ptr<Handle> handle_;
  WebCounts counts_;
};

}  // namespace troupe
