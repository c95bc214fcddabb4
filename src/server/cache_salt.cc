#include "server/cache_salt.h"

#include <fmt/core.h>

#include "server/http/secret_hash.h"

namespace troupe {

std::string CacheSalt(std::optional<std::string_view> key, std::string_view own) {
  if (!key && own.empty()) return {};
  // The length first: no pair can pass for another.
  if (key) return SecretHash(fmt::format("{} {}{}", key->size(), *key, own));
  return SecretHash(fmt::format("- {}", own));
}

}  // namespace troupe
