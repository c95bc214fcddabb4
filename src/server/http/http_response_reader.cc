#include "server/http/http_response_reader.h"

#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/basic_parser.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

namespace troupe {
namespace {

namespace beast = boost::beast;
using ErrorCode = boost::system::error_code;

constexpr std::size_t kLongestHead = 64 * 1024;
constexpr std::size_t kAtOnce = 16 * 1024;

}  // namespace

namespace http_response_internal {

using Text = beast::string_view;

// Beast's parser, whose events are handed on.
class ResponseParser final : public beast::http::basic_parser<false> {
 public:
  ResponseParser(const HttpResponseReader::OnHead& on_head,
                 const HttpResponseReader::OnPiece& on_piece)
      : on_head_(on_head), on_piece_(on_piece) {
    eager(true);
    header_limit(kLongestHead);
    body_limit(boost::none);
  }

  // 100 and others that only say that a response will come.
  bool is_interim() const { return head_.status / 100 == 1 && head_.status != 101; }

 private:
  void on_request_impl(beast::http::verb, Text, Text, int, ErrorCode&) override {}
  void on_response_impl(int status, Text, int, ErrorCode&) override {
    head_ = {.status = status, .content_type = ""};
  }
  void on_field_impl(beast::http::field, Text name, Text value, ErrorCode&) override {
    head_.headers.emplace_back(std::string(name), std::string(value));
  }
  void on_header_impl(ErrorCode&) override {
    head_.content_type = HeaderOf(head_.headers, "content-type");
    if (on_head_ && !is_interim()) on_head_(head_);
  }
  void on_body_init_impl(const boost::optional<std::uint64_t>&, ErrorCode&) override {}
  std::size_t on_body_impl(Text piece, ErrorCode&) override { return Tell(piece); }
  void on_chunk_header_impl(std::uint64_t, Text, ErrorCode&) override {}
  std::size_t on_chunk_body_impl(std::uint64_t, Text piece, ErrorCode&) override {
    return Tell(piece);
  }
  void on_finish_impl(ErrorCode&) override {}

  std::size_t Tell(Text piece) {
    if (on_piece_ && !piece.empty()) on_piece_({piece.data(), piece.size()});
    return piece.size();
  }

  const HttpResponseReader::OnHead& on_head_;
  const HttpResponseReader::OnPiece& on_piece_;
  HttpResponse head_;
};

}  // namespace http_response_internal

class HttpResponseReader::Impl {
 public:
  Impl(OnHead on_head, OnPiece on_piece)
      : on_head_(std::move(on_head)), on_piece_(std::move(on_piece)) {
    parser_.emplace(on_head_, on_piece_);
  }

  std::span<char> Room() {
    const auto room = buffer_.prepare(kAtOnce);
    return {static_cast<char*>(room.data()), room.size()};
  }

  Status Take(std::size_t bytes) {
    buffer_.commit(bytes);
    while (buffer_.size() > 0 && !done()) {
      ErrorCode error;
      const std::size_t used = parser_->put(buffer_.data(), error);
      buffer_.consume(used);
      if (error && error != beast::http::error::need_more) return NotHttp(error);
      if (parser_->is_done() && parser_->is_interim()) {
        parser_.emplace(on_head_, on_piece_);
        continue;
      }
      if (error || used == 0) break;
    }
    // What is left is a line without an end: of the head, or between chunks.
    if (buffer_.size() > kLongestHead) return NotHttp(beast::http::error::header_limit);
    return OkStatus();
  }

  Status OnEnd() {
    ErrorCode error;
    if (parser_->got_some()) parser_->put_eof(error);
    if (done()) return OkStatus();
    return DataLoss("the connection was closed before the answer was complete");
  }

  bool done() const { return parser_->is_done(); }
  bool keeps_alive() const { return parser_->keep_alive() && buffer_.size() == 0; }

 private:
  static Status NotHttp(ErrorCode error) {
    return DataLoss("not an answer of HTTP/1.1: {}", error.message());
  }

  const OnHead on_head_;
  const OnPiece on_piece_;
  std::optional<http_response_internal::ResponseParser> parser_;
  beast::flat_buffer buffer_;
};

HttpResponseReader::HttpResponseReader(OnHead on_head, OnPiece on_piece)
    : impl_(std::make_unique<Impl>(std::move(on_head), std::move(on_piece))) {}
HttpResponseReader::~HttpResponseReader() = default;

std::span<char> HttpResponseReader::Room() { return impl_->Room(); }
Status HttpResponseReader::Take(std::size_t bytes) { return impl_->Take(bytes); }
Status HttpResponseReader::OnEnd() { return impl_->OnEnd(); }
bool HttpResponseReader::done() const { return impl_->done(); }
bool HttpResponseReader::keeps_alive() const { return impl_->keeps_alive(); }

}  // namespace troupe
