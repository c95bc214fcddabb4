// Events of a stream (text/event-stream) as text.
#pragma once

#include <fmt/core.h>

#include <string>
#include <string_view>

#include "server/http/http_message.h"

namespace troupe {

inline constexpr std::string_view kEventStream = "text/event-stream";

// Proxies that gather bytes would hold back what a client waits for.
inline HttpResponse StreamHead() {
  return {.content_type = std::string(kEventStream), .headers = {{"X-Accel-Buffering", "no"}}};
}

// `data` is one line, as JSON is.
inline std::string EventOf(std::string_view data) { return fmt::format("data: {}\n\n", data); }
inline std::string EventOf(std::string_view name, std::string_view data) {
  return fmt::format("event: {}\ndata: {}\n\n", name, data);
}
// That a client ignores, so that it and those between know that the server lives.
inline std::string CommentEvent(std::string_view text) { return fmt::format(": {}\n\n", text); }

}  // namespace troupe
