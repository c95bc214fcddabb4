// What only this process can make of a text, by a secret that it draws: the same for the same text,
// and it says nothing of that.
#pragma once

#include <string>
#include <string_view>

namespace troupe {

// 64 hexadecimal digits: HMAC with SHA-256.
std::string SecretHash(std::string_view text);

}  // namespace troupe
