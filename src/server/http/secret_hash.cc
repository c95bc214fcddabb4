#include "server/http/secret_hash.h"

#include <fmt/format.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/rand.h>

#include <array>

#include "base/check.h"

namespace troupe {
namespace {

using Digest = std::array<unsigned char, 32>;

const Digest& SecretOfProcess() {
  static const Digest secret = [] {
    Digest drawn = {};
    TROUPE_CHECK(RAND_bytes(drawn.data(), drawn.size()) == 1);
    return drawn;
  }();
  return secret;
}

}  // namespace

std::string SecretHash(std::string_view text) {
  Digest digest = {};
  const Digest& secret = SecretOfProcess();
  TROUPE_CHECK(HMAC(EVP_sha256(), secret.data(), secret.size(),
                    reinterpret_cast<const unsigned char*>(text.data()), text.size(), digest.data(),
                    nullptr) != nullptr);
  return fmt::format("{:02x}", fmt::join(digest, ""));
}

}  // namespace troupe
