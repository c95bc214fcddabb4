// The response that is the live page: one file that loads nothing from anywhere, with headers that
// hold a browser to that.
#pragma once

#include "server/http/http_message.h"

namespace troupe {

// 304 for a browser that has it.
HttpResponse LivePage(const HttpRequest& request);

}  // namespace troupe
