#include "fetch/web_client.h"

#include <troupe/version.h>

#include <algorithm>
#include <utility>

#include "fetch/plan/web_address.h"

#ifdef TROUPE_WITHOUT_CURL

namespace troupe {

struct WebClient::Handle {};
struct WebClient::Transfer {};

WebClient::WebClient(std::unique_ptr<Handle> handle) : handle_(std::move(handle)) {}
WebClient::WebClient(WebClient&&) noexcept = default;
WebClient& WebClient::operator=(WebClient&&) noexcept = default;
WebClient::~WebClient() = default;

Result<WebClient> WebClient::Create() {
  return Error(Code::kUnimplemented,
               "this program was built without libcurl, as static ones are, and gets no models");
}

ReplyVerdict WebClient::Get(const WebRequest&, const Judge&, const Take&,
                            const std::function<bool()>&) {
  return {ReplyVerdict::Next::kGiveUp, Create().status()};
}

}  // namespace troupe

#else

#include "fetch/curl_api.h"

namespace troupe {
namespace {

constexpr int kMostRedirects = 8;
constexpr long kConnectSeconds = 30;
constexpr long kSilentSeconds = 30;  // without a byte: the connection is dead
using WebNext = ReplyVerdict::Next;

class HeaderList {
 public:
  explicit HeaderList(const CurlApi& api) : api_(api) {}
  HeaderList(const HeaderList&) = delete;
  HeaderList& operator=(const HeaderList&) = delete;
  ~HeaderList() { api_.FreeAll(list_); }

  void Add(const std::string& line) {
    if (curl_slist* const longer = api_.Append(list_, line.c_str())) list_ = longer;
  }
  curl_slist* get() const { return list_; }

 private:
  const CurlApi& api_;
  curl_slist* list_ = nullptr;
};

std::string HeaderOf(const CurlApi& api, CURL* curl, const char* name) {
  curl_header* header = nullptr;
  if (api.Header(curl, name, 0, CURLH_HEADER, -1, &header) != CURLHE_OK) return {};
  return header->value;
}

ReplyHead HeadOf(const CurlApi& api, CURL* curl) {
  ReplyHead head;
  long status = 0;
  api.GetInfo(curl, CURLINFO_RESPONSE_CODE, &status);
  head.status = static_cast<int>(status);
  curl_off_t length = -1;
  api.GetInfo(curl, CURLINFO_CONTENT_LENGTH_DOWNLOAD_T, &length);
  if (length >= 0) head.length = static_cast<std::uint64_t>(length);
  head.range = HeaderOf(api, curl, "Content-Range");
  head.etag = HeaderOf(api, curl, "ETag");
  const char* location = nullptr;
  api.GetInfo(curl, CURLINFO_REDIRECT_URL, &location);
  if (location != nullptr) head.location = location;
  curl_off_t wait = 0;
  api.GetInfo(curl, CURLINFO_RETRY_AFTER, &wait);
  if (wait > 0) head.retry_after = static_cast<double>(wait);
  return head;
}

bool IsRefusalOfOurs(CURLcode code) {
  return code == CURLE_PEER_FAILED_VERIFICATION || code == CURLE_SSL_CACERT_BADFILE ||
         code == CURLE_UNSUPPORTED_PROTOCOL || code == CURLE_URL_MALFORMAT ||
         code == CURLE_SSL_CERTPROBLEM;
}

}  // namespace

struct WebClient::Handle {
  const CurlApi& api;
  CURL* curl = api.Init();

  explicit Handle(const CurlApi& its) : api(its) {}
  ~Handle() { api.Cleanup(curl); }
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;
};

// Of one request: what its callbacks know.
struct WebClient::Transfer {
  const CurlApi& api;
  CURL* curl;
  const Judge& judge;
  const Take& take;
  const std::function<bool()>& go_on;
  bool judged = false;
  bool cancelled = false;
  ReplyHead head;
  ReplyVerdict verdict;
  Status taking;

  bool Wanted() {
    if (!judged) {
      head = HeadOf(api, curl);
      verdict = judge(head);
      judged = true;
    }
    return verdict.next == WebNext::kAppend || verdict.next == WebNext::kFromStart;
  }

  static std::size_t OnBody(char* data, std::size_t size, std::size_t count, void* self) {
    Transfer& transfer = *static_cast<Transfer*>(self);
    if (!transfer.Wanted()) return 0;  // which ends the transfer
    transfer.taking = transfer.take(std::as_bytes(std::span(data, size * count)));
    return transfer.taking.ok() ? size * count : 0;
  }

  static int OnProgress(void* self, curl_off_t, curl_off_t, curl_off_t, curl_off_t) {
    Transfer& transfer = *static_cast<Transfer*>(self);
    transfer.cancelled = transfer.go_on && !transfer.go_on();
    return transfer.cancelled ? 1 : 0;
  }
};

WebClient::WebClient(std::unique_ptr<Handle> handle) : handle_(std::move(handle)) {}
WebClient::WebClient(WebClient&&) noexcept = default;
WebClient& WebClient::operator=(WebClient&&) noexcept = default;
WebClient::~WebClient() = default;

Result<WebClient> WebClient::Create() {
  TROUPE_ASSIGN_OR_RETURN(const CurlApi* const api, LoadCurl());
  auto handle = std::make_unique<Handle>(*api);
  if (handle->curl == nullptr) return Error(Code::kInternal, "libcurl could not be initialised");
  return WebClient(std::move(handle));
}

ReplyVerdict WebClient::Get(const WebRequest& request, const Judge& judge, const Take& take,
                            const std::function<bool()>& go_on) {
  const auto give_up = [](Status why) { return ReplyVerdict{WebNext::kGiveUp, std::move(why)}; };
  Result<std::string> home = OriginOf(request.address);
  if (!home.ok()) return give_up(home.status());
  WebRequest now = request;
  for (int redirects = 0; redirects <= kMostRedirects; ++redirects) {
    Transfer transfer{
        .api = handle_->api, .curl = handle_->curl, .judge = judge, .take = take, .go_on = go_on};
    ReplyVerdict verdict = GetOnce(now, transfer);
    if (verdict.next != WebNext::kFollow) return verdict;
    ++counts_.redirects;
    const std::string& next = transfer.head.location;
    if (Status refused = CheckRedirect(now.address, next); !refused.ok()) {
      return give_up(std::move(refused));
    }
    // Once with another host the token stays away, also when that one sends us back.
    if (OriginOf(next).value() != *home) now.token.clear();
    now.address = next;
  }
  return give_up(Error(Code::kUnavailable, "{}: more than {} redirects", *home, kMostRedirects));
}

ReplyVerdict WebClient::GetOnce(const WebRequest& request, Transfer& transfer) {
  ++counts_.requests;
  const auto& [api, curl] = *handle_;
  HeaderList headers(api);
  for (const std::string& line : request.headers) headers.Add(line);
  if (!request.token.empty()) headers.Add("Authorization: Bearer " + request.token);
  constexpr const char* kAgent = "troupe/" TROUPE_VERSION;
  api.Reset(curl);  // connections stay
  api.SetOption(curl, CURLOPT_URL, request.address.c_str());
  api.SetOption(curl, CURLOPT_PROTOCOLS_STR, "http,https");
  api.SetOption(curl, CURLOPT_HTTPHEADER, headers.get());
  api.SetOption(curl, CURLOPT_HEADEROPT, static_cast<long>(CURLHEADER_SEPARATE));  // no proxy's
  api.SetOption(curl, CURLOPT_USERAGENT, kAgent);
  api.SetOption(curl, CURLOPT_NOSIGNAL, 1L);
  api.SetOption(curl, CURLOPT_CONNECTTIMEOUT, kConnectSeconds);
  api.SetOption(curl, CURLOPT_LOW_SPEED_LIMIT, 1L);
  api.SetOption(curl, CURLOPT_LOW_SPEED_TIME, kSilentSeconds);
  api.SetOption(curl, CURLOPT_WRITEFUNCTION, &Transfer::OnBody);
  api.SetOption(curl, CURLOPT_WRITEDATA, &transfer);
  api.SetOption(curl, CURLOPT_NOPROGRESS, 0L);
  api.SetOption(curl, CURLOPT_XFERINFOFUNCTION, &Transfer::OnProgress);
  api.SetOption(curl, CURLOPT_XFERINFODATA, &transfer);
  const CURLcode code = api.Perform(curl);
  if (transfer.cancelled) {
    return {WebNext::kGiveUp, Error(Code::kCancelled, "stopped")};
  }
  if (!transfer.taking.ok()) return {WebNext::kGiveUp, transfer.taking};
  // A reply without a body has not been judged yet, and one that is not wanted was cut by us.
  if (code == CURLE_OK || transfer.judged) {
    const bool wanted = transfer.Wanted();
    if (code == CURLE_OK || !wanted) return transfer.verdict;
  }
  const std::string origin = OriginOf(request.address).value();
  if (IsRefusalOfOurs(code)) {
    return {WebNext::kGiveUp,
            Error(Code::kPermissionDenied, "{}: {}", origin, api.ErrorText(code))};
  }
  return {WebNext::kComeAgain, Error(Code::kUnavailable, "{}: {}", origin, api.ErrorText(code))};
}

}  // namespace troupe

#endif
