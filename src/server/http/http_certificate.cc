#include "server/http/http_certificate.h"

#include <openssl/ssl.h>
#include <openssl/x509.h>

#include <boost/asio/ssl.hpp>
#include <ctime>

namespace troupe {
namespace {

namespace ssl = boost::asio::ssl;
using TlsError = boost::system::error_code;

std::int64_t ExpiryOf(const X509* certificate) {
  std::tm time{};
  if (certificate == nullptr || ASN1_TIME_to_tm(X509_get0_notAfter(certificate), &time) != 1) {
    return 0;
  }
  return ::timegm(&time);
}

// Those that stand behind the certificate in its file.
const STACK_OF(X509) * ChainOf(ssl::context& context) {
  STACK_OF(X509)* chain = nullptr;
  SSL_CTX_get0_chain_certs(context.native_handle(), &chain);
  return chain;
}

int LengthOf(const STACK_OF(X509) * chain) { return chain == nullptr ? 0 : sk_X509_num(chain); }

}  // namespace

Result<HttpCertificate> HttpCertificate::Read(const std::string& certificate,
                                              const std::string& key) {
  if (certificate.empty() || key.empty()) {
    return InvalidArgument("a certificate without its key, or a key without its certificate");
  }
  auto context = std::make_shared<ssl::context>(ssl::context::tls_server);
  TlsError error;
  context->set_options(ssl::context::default_workarounds | ssl::context::no_tlsv1 |
                       ssl::context::no_tlsv1_1);
  // Thousands of silent connections should not keep buffers of 16 KiB each.
  SSL_CTX_set_mode(context->native_handle(), SSL_MODE_RELEASE_BUFFERS);
  // Without one OpenSSL asks whoever sits at the terminal.
  context->set_password_callback(
      [](std::size_t, ssl::context::password_purpose) { return std::string(); });
  if (context->use_certificate_chain_file(certificate, error)) {
    return InvalidArgument("{}: {}, expected a PEM file with a certificate", certificate,
                           error.message());
  }
  if (context->use_private_key_file(key, ssl::context::pem, error)) {
    return InvalidArgument("{}: {}, expected a PEM file with the key of {}, without a passphrase",
                           key, error.message(), certificate);
  }
  HttpCertificate read;
  read.expires_ = ExpiryOf(SSL_CTX_get0_certificate(context->native_handle()));
  read.context_ = std::move(context);
  return read;
}

bool HttpCertificate::SameAs(const HttpCertificate& other) const {
  const X509* const mine = SSL_CTX_get0_certificate(context_->native_handle());
  const X509* const theirs = SSL_CTX_get0_certificate(other.context_->native_handle());
  if (X509_cmp(mine, theirs) != 0) return false;
  const STACK_OF(X509)* const chain = ChainOf(*context_);
  const STACK_OF(X509)* const their_chain = ChainOf(*other.context_);
  if (LengthOf(chain) != LengthOf(their_chain)) return false;
  for (int i = 0; i < LengthOf(chain); ++i) {
    if (X509_cmp(sk_X509_value(chain, i), sk_X509_value(their_chain, i)) != 0) return false;
  }
  return true;
}

}  // namespace troupe
