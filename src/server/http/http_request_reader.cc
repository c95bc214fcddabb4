#include "server/http/http_request_reader.h"

#include <fmt/core.h>

#include <algorithm>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/string.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/optional.hpp>
#include <cstdint>
#include <functional>
#include <iterator>
#include <optional>
#include <string_view>
#include <utility>

#include "server/http/growing_body.h"

namespace troupe {
namespace {

namespace http = boost::beast::http;

// Of a header: each takes memory beside its bytes. Browsers send some twenty, and proxies add some.
constexpr std::size_t kMostFields = 128;
// What every connection has of its own: the first bytes of a request, and a head of no more.
constexpr std::size_t kOwn = 4096;

// That a head takes.
std::size_t BytesOf(const HttpRequest& head) {
  constexpr std::size_t kOfField = 96;
  std::size_t bytes = head.method.size() + head.path.size();
  for (const auto& [name, value] : head.headers) bytes += name.size() + value.size() + kOfField;
  return bytes;
}

}  // namespace

class HttpRequestReader::Impl {
 public:
  Impl(std::size_t header_bytes, std::shared_ptr<ByteBudget> memory,
       std::function<bool()> make_room)
      : header_bytes_(header_bytes),
        memory_(std::move(memory)),
        make_room_(make_room ? std::move(make_room) : [] { return false; }) {
    Reset();
  }

  void Reset() {
    parser_.emplace();
    parser_->get().body().budget = memory_;
    parser_->get().body().make_room = &make_room_;
    parser_->header_limit(static_cast<std::uint32_t>(header_bytes_));
    parser_->eager(true);
    begun_ = has_head_ = starved_ = looked_for_room_ = false;
    if (buffer_.size() == 0) {  // who is silent needs none
      buffer_ = boost::beast::flat_buffer();
      buffer_memory_ = nullptr;
    }
    head_ = {};
    head_memory_ = nullptr;
  }

  std::span<char> Room() {
    // Beyond its own there is as much as has come.
    constexpr std::size_t kMost = 64 * 1024;
    const std::size_t had = buffer_.size();
    if (had < kOwn && body().size() <= kOwn) return Prepare(kOwn - had);
    const std::size_t next = std::clamp(body().size(), kOwn, kMost);
    if (buffer_memory_ == nullptr) buffer_memory_ = std::make_unique<HeldBytes>(memory_);
    while (!buffer_memory_->GrowTo(had + next)) {
      if (!make_room_()) return {};
    }
    return Prepare(next);
  }

  void Take(std::size_t bytes) {
    buffer_.commit(bytes);
    starved_ = false;
  }

  Event Next() {
    for (;;) {
      if (has_head_ && !std::exchange(looked_for_room_, true) && !HasRoom()) return Event::kNoRoom;
      if (parser_->is_done()) return HasTooMany() ? TooManyFields() : Event::kDone;
      if (!begun_) SkipBlankLines();
      if (buffer_.size() == 0 || starved_) return NeedMore();
      if (!std::exchange(begun_, true)) return Event::kBegun;
      ErrorCode error;
      const std::size_t used = parser_->put(buffer_.data(), error);
      buffer_.consume(used);
      if (error == http::error::buffer_overflow) return Event::kNoRoom;  // HeldBody says so
      if (error && error != http::error::need_more) return Malformed(error);
      starved_ = error || used == 0;
      if (parser_->is_header_done() && !std::exchange(has_head_, true)) {
        ReadHead();
        if (HasTooMany()) return TooManyFields();
        return Event::kHead;
      }
    }
  }

  void set_body_limit(std::size_t most) {
    body_limit_ = most;
    parser_->body_limit(most);
  }

  bool begun() const { return begun_; }
  bool has_head() const { return has_head_; }
  bool done() const { return parser_->is_done(); }
  const HttpRequest& head() const { return head_; }
  bool awaits_continue() const {
    return !done() && boost::beast::iequals(parser_->get()[http::field::expect], "100-continue");
  }
  bool takes_chunks() const { return parser_->get().version() >= 11; }
  bool keeps_alive() const { return parser_->get().keep_alive(); }
  const Fault& fault() const { return fault_; }

  HttpRequest TakeRequest() {
    HttpRequest request = std::move(head_);
    request.body = body().TakeText();
    request.held = body().TakeMemory();
    if (head_memory_ != nullptr) {
      using Both = std::pair<std::shared_ptr<void>, std::shared_ptr<HeldBytes>>;
      request.held = std::make_shared<Both>(std::move(request.held), std::move(head_memory_));
    }
    return request;
  }

  void DropBody() { body().Drop(); }
  void Forget() {
    parser_.emplace();
    buffer_ = boost::beast::flat_buffer();
    head_.headers = {};
    GiveBack();
  }
  void GiveBack() {
    DropBody();
    buffer_memory_ = nullptr;
    head_memory_ = nullptr;
  }
  std::size_t held() const {
    return parser_->get().body().body.held() + (buffer_memory_ ? buffer_memory_->held() : 0) +
           (head_memory_ ? head_memory_->held() : 0);
  }

 private:
  using ErrorCode = boost::system::error_code;

  // What http::parser calls a Body, whose names these are.
  struct HeldBody {
    struct value_type {
      GrowingBody body;
      std::shared_ptr<ByteBudget> budget;
      const std::function<bool()>* make_room = nullptr;
    };
    class reader {
     public:
      template <bool kIsRequest, typename Fields>
      reader(const http::header<kIsRequest, Fields>&, value_type& to) : to_(to) {}
      void init(const boost::optional<std::uint64_t>& length, ErrorCode& error) {
        error = {};
        to_.body.Expect(to_.budget, length.value_or(0));
      }
      std::size_t put(const boost::asio::const_buffer& bytes, ErrorCode& error) {
        error = {};
        const std::string_view text(static_cast<const char*>(bytes.data()), bytes.size());
        while (!to_.body.Append(text)) {
          if ((*to_.make_room)()) continue;
          error = http::error::buffer_overflow;
          return 0;
        }
        return bytes.size();
      }
      void finish(ErrorCode& error) { error = {}; }

     private:
      value_type& to_;
    };
  };

  GrowingBody& body() { return parser_->get().body().body; }

  std::span<char> Prepare(std::size_t bytes) {
    const auto room = buffer_.prepare(bytes);
    return {static_cast<char*>(room.data()), room.size()};
  }

  Event NeedMore() {
    // What the parser leaves is a line that has no end yet: of the header, or between chunks.
    if (buffer_.size() > header_bytes_) return Malformed(http::error::header_limit);
    return Event::kMore;
  }

  // Fields: of the header, and of those behind the last chunk of a body.
  bool HasTooMany() const {
    const auto& fields = parser_->get();
    return static_cast<std::size_t>(std::distance(fields.begin(), fields.end())) > kMostFields;
  }

  Event TooManyFields() {
    fault_ = {.status = 431,
              .message = fmt::format("the header has more than {} fields", kMostFields)};
    return Event::kMalformed;
  }

  Event Malformed(ErrorCode error) {
    if (head_.path.empty()) ReadHead();
    if (error == http::error::header_limit) {
      fault_ = {.status = 431, .message = "the header is too long"};
    } else if (error == http::error::body_limit) {
      fault_ = {.status = 413,
                .message = fmt::format("the body has more than {} bytes", body_limit_)};
    } else {
      fault_ = {.status = 400,
                .message = fmt::format("not a request of HTTP/1.1: {}", error.message())};
    }
    return Event::kMalformed;
  }

  void ReadHead() {
    const auto& message = parser_->get();
    std::string_view target(message.target().data(), message.target().size());
    const std::string_view authority = TakeAuthority(target);
    head_ = {.method = std::string(message.method_string()),
             .path = DecodePercent(target.substr(0, target.find('?'))),
             .headers = {},
             .body = {}};
    for (const auto& field : message) {
      if (head_.headers.size() == kMostFields) break;
      // What a target names counts, and not the field (RFC 9112, 3.2.2).
      if (!authority.empty() && field.name() == http::field::host) continue;
      head_.headers.emplace_back(std::string(field.name_string()), std::string(field.value()));
    }
    if (!authority.empty()) head_.headers.emplace_back("Host", std::string(authority));
  }

  // "a:80" of "http://a:80/path", as it is said to proxies; of "/path" nothing. Leaves the path.
  static std::string_view TakeAuthority(std::string_view& target) {
    for (const std::string_view scheme : {"http://", "https://"}) {
      const std::string_view begin = target.substr(0, scheme.size());
      if (!boost::beast::iequals({begin.data(), begin.size()}, {scheme.data(), scheme.size()})) {
        continue;
      }
      target.remove_prefix(scheme.size());
      const std::string_view authority = target.substr(0, target.find_first_of("/?"));
      target.remove_prefix(authority.size());
      if (!target.starts_with('/')) target = "/";
      return authority;
    }
    return {};
  }

  // Whether there is memory for the head, which takes it, and as things are for the announced body,
  // for which none is kept.
  bool HasRoom() {
    if (const std::size_t bytes = BytesOf(head_); bytes > kOwn) {
      head_memory_ = std::make_shared<HeldBytes>(memory_);
      while (!head_memory_->GrowTo(2 * bytes)) {  // the parser has it as well
        if (!make_room_()) return false;
      }
    }
    const std::size_t announced = parser_->content_length().value_or(0);
    while (announced <= body_limit_ && announced > memory_->left()) {
      if (!make_room_()) return false;
    }
    return true;
  }

  // That some clients send after a body (RFC 9112, 2.2).
  void SkipBlankLines() {
    const auto bytes = buffer_.data();
    const char* const begin = static_cast<const char*>(bytes.data());
    std::size_t blank = 0;
    while (blank < bytes.size() && (begin[blank] == '\r' || begin[blank] == '\n')) ++blank;
    buffer_.consume(blank);
  }

  const std::size_t header_bytes_;
  const std::shared_ptr<ByteBudget> memory_;
  const std::function<bool()> make_room_;
  boost::beast::flat_buffer buffer_;
  std::unique_ptr<HeldBytes> buffer_memory_;  // what is beyond its first bytes
  std::optional<http::request_parser<HeldBody>> parser_;
  bool begun_ = false, has_head_ = false, looked_for_room_ = false;
  bool starved_ = false;  // the parser can do nothing with the bytes in buffer_ alone
  std::size_t body_limit_ = 0;
  HttpRequest head_;
  std::shared_ptr<HeldBytes> head_memory_;  // null: it is short
  Fault fault_;
};

HttpRequestReader::HttpRequestReader(std::size_t header_bytes, std::shared_ptr<ByteBudget> memory,
                                     std::function<bool()> make_room)
    : impl_(std::make_unique<Impl>(header_bytes, std::move(memory), std::move(make_room))) {}
HttpRequestReader::~HttpRequestReader() = default;

std::span<char> HttpRequestReader::Room() { return impl_->Room(); }
void HttpRequestReader::Take(std::size_t bytes) { impl_->Take(bytes); }
HttpRequestReader::Event HttpRequestReader::Next() { return impl_->Next(); }
void HttpRequestReader::Reset() { impl_->Reset(); }
void HttpRequestReader::set_body_limit(std::size_t most) { impl_->set_body_limit(most); }
bool HttpRequestReader::begun() const { return impl_->begun(); }
bool HttpRequestReader::has_head() const { return impl_->has_head(); }
bool HttpRequestReader::done() const { return impl_->done(); }
const HttpRequest& HttpRequestReader::head() const { return impl_->head(); }
bool HttpRequestReader::awaits_continue() const { return impl_->awaits_continue(); }
bool HttpRequestReader::takes_chunks() const { return impl_->takes_chunks(); }
bool HttpRequestReader::keeps_alive() const { return impl_->keeps_alive(); }
const HttpRequestReader::Fault& HttpRequestReader::fault() const { return impl_->fault(); }
HttpRequest HttpRequestReader::TakeRequest() { return impl_->TakeRequest(); }
void HttpRequestReader::DropBody() { impl_->DropBody(); }
void HttpRequestReader::Forget() { impl_->Forget(); }
void HttpRequestReader::GiveBack() { impl_->GiveBack(); }
std::size_t HttpRequestReader::held() const { return impl_->held(); }

}  // namespace troupe
