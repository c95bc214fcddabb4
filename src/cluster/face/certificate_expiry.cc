#include "cluster/face/certificate_expiry.h"

#include <fmt/chrono.h>
#include <openssl/pem.h>
#include <openssl/x509.h>

#include <ctime>
#include <memory>

#include "io/read_whole.h"

namespace troupe {
namespace {

struct FreeExpiryBytes {
  void operator()(BIO* bytes) const { BIO_free_all(bytes); }
};
struct FreeExpiryCertificate {
  void operator()(X509* certificate) const { X509_free(certificate); }
};

std::string DateOf(std::int64_t seconds) {
  return fmt::format("{:%Y-%m-%d %H:%M} UTC", fmt::gmtime(static_cast<std::time_t>(seconds)));
}

}  // namespace

Result<std::int64_t> ExpiryOfCertificate(const std::string& path) {
  TROUPE_ASSIGN_OR_RETURN(const std::string text, ReadWhole(path));
  const std::unique_ptr<BIO, FreeExpiryBytes> bytes(
      BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
  const std::unique_ptr<X509, FreeExpiryCertificate> certificate(
      PEM_read_bio_X509(bytes.get(), nullptr, nullptr, nullptr));
  std::tm time{};
  if (certificate == nullptr ||
      ASN1_TIME_to_tm(X509_get0_notAfter(certificate.get()), &time) != 1) {
    return InvalidArgument("{}: not a PEM file of a certificate", path);
  }
  return std::int64_t{::timegm(&time)};
}

Result<std::string> RemarkOnExpiry(const std::string& path, std::int64_t expires,
                                   std::int64_t now) {
  constexpr std::int64_t kDay = 86'400, kSoon = 30;
  if (expires <= now) {
    return Error(Code::kFailedPrecondition,
                 "{} has expired, on {}: nodes need certificates that are valid", path,
                 DateOf(expires));
  }
  if (expires - now > kSoon * kDay) return std::string();
  return fmt::format("{} expires in {} days, on {}", path, (expires - now) / kDay, DateOf(expires));
}

}  // namespace troupe
