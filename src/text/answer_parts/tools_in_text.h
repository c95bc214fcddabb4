// Tools for models whose chat template knows nothing of them: their list, calls and results become
// texts of ordinary messages, in the way that most models know (GeneralCallMarks).
#pragma once

#include <troupe/request.h>

#include <span>
#include <vector>

#include "base/json.h"
#include "base/status.h"

namespace troupe {

// Messages of the system, the user and the assistant alone. `tools`: an array or null.
Result<std::vector<Message>> WriteToolsAsText(std::span<const Message> messages, const Json& tools);

}  // namespace troupe
