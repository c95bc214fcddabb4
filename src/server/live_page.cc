#include "server/live_page.h"

#include <fmt/core.h>

#include "server/live_page_data.h"

namespace troupe {

HttpResponse LivePage(const HttpRequest& request) {
  const LivePageData page = LivePageFile();
  const std::string tag = fmt::format("\"{}\"", page.tag);
  HttpResponse response{.content_type = "text/html; charset=utf-8"};
  response.headers = {
      // Only its own script runs, whatever a model writes, and it speaks to this server alone.
      {"Content-Security-Policy",
       fmt::format("default-src 'none'; script-src 'sha256-{}'; style-src 'sha256-{}'; "
                   "connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; "
                   "frame-ancestors 'none'",
                   page.script_hash, page.style_hash)},
      {"X-Content-Type-Options", "nosniff"},
      {"Referrer-Policy", "no-referrer"},
      {"Cross-Origin-Opener-Policy", "same-origin"},
      // Another build may have another page: a browser asks each time whether it is still this one.
      {"Cache-Control", "no-cache"},
      {"ETag", tag}};
  if (request.Header("if-none-match").find(tag) != std::string_view::npos) {
    response.status = 304;
    return response;
  }
  response.body = page.html;
  return response;
}

}  // namespace troupe
