// What parts the prompts of a server's clients from each other: a word that says nothing of the
// keys and salts it is made of, so that it may be kept, and sent to the cloud of an end. Each
// process makes others, as nothing that has a salt outlives it.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace troupe {

// Empty where there is neither a key that counts nor a salt of the request's own. Two pairs that
// differ have different words; a key that is empty counts as well.
std::string CacheSalt(std::optional<std::string_view> key, std::string_view own);

}  // namespace troupe
