#include "server/http/http_request_reader.h"

#include <fmt/core.h>

#include <algorithm>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/string.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>

namespace troupe {
namespace {

namespace http = boost::beast::http;

}  // namespace

class HttpRequestReader::Impl {
 public:
  Impl(std::size_t header_bytes, std::shared_ptr<ByteBudget> memory)
      : header_bytes_(header_bytes), memory_(std::move(memory)) {
    Reset();
  }

  void Reset() {
    parser_.emplace();
    parser_->header_limit(static_cast<std::uint32_t>(header_bytes_));
    parser_->eager(true);
    begun_ = has_head_ = starved_ = false;
    if (buffer_.size() == 0) {  // who is silent needs none
      buffer_ = boost::beast::flat_buffer();
      buffer_memory_ = nullptr;
    }
    head_ = {};
    body_memory_ = nullptr;
  }

  std::span<char> Room() {
    constexpr std::size_t kAtOnce = 4096, kOfBodies = 64 * 1024;
    const std::size_t next = has_head_ ? kOfBodies : kAtOnce;
    if (buffer_.size() + next > kAtOnce) {
      if (buffer_memory_ == nullptr) buffer_memory_ = std::make_unique<HeldBytes>(memory_);
      if (!buffer_memory_->GrowTo(buffer_.size() + next)) return {};
    }
    const auto room = buffer_.prepare(next);
    return {static_cast<char*>(room.data()), room.size()};
  }

  void Take(std::size_t bytes) {
    buffer_.commit(bytes);
    starved_ = false;
  }

  Event Next() {
    for (;;) {
      if (has_head_ && !HoldsBody()) return Event::kNoRoom;
      if (parser_->is_done()) return Event::kDone;
      if (!begun_) SkipBlankLines();
      if (buffer_.size() == 0 || starved_) return NeedMore();
      if (!std::exchange(begun_, true)) return Event::kBegun;
      ErrorCode error;
      const std::size_t used = parser_->put(buffer_.data(), error);
      buffer_.consume(used);
      if (error && error != http::error::need_more) return Malformed(error);
      starved_ = error || used == 0;
      if (parser_->is_header_done() && !std::exchange(has_head_, true)) {
        ReadHead();
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
    request.body = std::move(parser_->get().body());
    request.held = std::move(body_memory_);
    return request;
  }

  void DropBody() {
    parser_->get().body() = {};
    body_memory_ = nullptr;
  }

 private:
  using ErrorCode = boost::system::error_code;

  Event NeedMore() {
    // What the parser leaves is a line that has no end yet: of the header, or between chunks.
    if (buffer_.size() > header_bytes_) return Malformed(http::error::header_limit);
    return Event::kMore;
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
    const std::string_view target(message.target().data(), message.target().size());
    head_ = {.method = std::string(message.method_string()),
             .path = DecodePercent(target.substr(0, target.find('?'))),
             .headers = {},
             .body = {}};
    for (const auto& field : message) {
      head_.headers.emplace_back(std::string(field.name_string()), std::string(field.value()));
    }
  }

  // Whether there is memory for the body as far as it is known by now.
  bool HoldsBody() {
    const std::size_t known =
        std::max<std::size_t>(parser_->content_length().value_or(0), parser_->get().body().size());
    if (known == 0 || known > body_limit_) return true;  // nothing is kept of it
    if (body_memory_ == nullptr) body_memory_ = std::make_shared<HeldBytes>(memory_);
    return body_memory_->GrowTo(known);
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
  boost::beast::flat_buffer buffer_;
  std::unique_ptr<HeldBytes> buffer_memory_;  // what is beyond its first bytes
  std::optional<http::request_parser<http::string_body>> parser_;
  bool begun_ = false, has_head_ = false;
  bool starved_ = false;  // the parser can do nothing with the bytes in buffer_ alone
  std::size_t body_limit_ = 0;
  HttpRequest head_;
  std::shared_ptr<HeldBytes> body_memory_;
  Fault fault_;
};

HttpRequestReader::HttpRequestReader(std::size_t header_bytes, std::shared_ptr<ByteBudget> memory)
    : impl_(std::make_unique<Impl>(header_bytes, std::move(memory))) {}
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

}  // namespace troupe
