// A talk as a file: what /save writes and /load reads, with the messages of OpenAI's chat API
// (docs/formats/talk.md).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <troupe/request.h>
#include "base/json.h"
#include "base/status.h"

namespace troupe {

Json TalkRecord(const std::vector<Message>& messages);
// `name` is the file's, for errors.
Result<std::vector<Message>> ParseTalk(const std::string& name, std::string_view text);

}  // namespace troupe
