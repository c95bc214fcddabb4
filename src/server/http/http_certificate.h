// A certificate of TLS with its private key, read from PEM files and found to belong together, as a
// value: connections that begin with one keep it, whatever their server shows to the next.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/status.h"

namespace boost::asio::ssl {
class context;
}

namespace troupe {

class HttpCertificate {
 public:
  // Paths of PEM files. kInvalidArgument: one is none, has a passphrase, or the key is another's.
  static Result<HttpCertificate> Read(const std::string& certificate, const std::string& key);

  // Whether clients see the same one, with the same chain behind it.
  bool SameAs(const HttpCertificate& other) const;
  std::int64_t expires() const { return expires_; }  // seconds since 1970

  boost::asio::ssl::context& context() const { return *context_; }

 private:
  HttpCertificate() = default;

  std::shared_ptr<boost::asio::ssl::context> context_;
  std::int64_t expires_ = 0;
};

}  // namespace troupe
