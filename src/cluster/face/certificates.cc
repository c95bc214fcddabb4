#include "cluster/face/certificates.h"

#include <arpa/inet.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509v3.h>

#include <array>
#include <filesystem>
#include <memory>
#include <span>

#include "io/atomic_file.h"
#include "io/read_whole.h"

namespace troupe {
namespace {

template <auto kFree>
struct FreeBy {
  template <typename T>
  void operator()(T* object) const {
    kFree(object);
  }
};
using SslKey = std::unique_ptr<EVP_PKEY, FreeBy<EVP_PKEY_free>>;
using SslCertificate = std::unique_ptr<X509, FreeBy<X509_free>>;
using SslBytes = std::unique_ptr<BIO, FreeBy<BIO_free_all>>;

constexpr std::uint32_t kAuthorityDays = 3650;

Status SslProblem(const std::string& what) {
  std::array<char, 256> text = {};
  ERR_error_string_n(ERR_get_error(), text.data(), text.size());
  return Error(Code::kInternal, "{}: {}", what, text.data());
}

bool IsNumeric(const std::string& host) {
  in6_addr address;
  return ::inet_pton(AF_INET, host.c_str(), &address) == 1 ||
         ::inet_pton(AF_INET6, host.c_str(), &address) == 1;
}

// A name of a file, and nothing that an extension's text would take apart.
Status CheckHost(const std::string& host) {
  const bool known = host.find_first_not_of(
                         "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_:") ==
                     std::string::npos;
  if (!host.empty() && known && host != "authority" && host.find("..") == std::string::npos) {
    return OkStatus();
  }
  return InvalidArgument("host '{}': a name or an address expected", host);
}

bool AddExtension(X509& certificate, X509& issuer, int kind, const std::string& value) {
  X509V3_CTX context;
  X509V3_set_ctx(&context, &issuer, &certificate, nullptr, nullptr, 0);
  const std::unique_ptr<X509_EXTENSION, FreeBy<X509_EXTENSION_free>> extension(
      X509V3_EXT_conf_nid(nullptr, &context, kind, value.c_str()));
  return extension != nullptr && X509_add_ext(&certificate, extension.get(), -1) == 1;
}

bool SetFacts(X509& certificate, const std::string& name, std::uint32_t days, EVP_PKEY& key) {
  std::array<unsigned char, 16> serial = {};
  const std::unique_ptr<BIGNUM, FreeBy<BN_free>> number(BN_new());
  if (RAND_bytes(serial.data(), serial.size()) != 1 || number == nullptr) return false;
  serial[0] &= 0x7f;  // positive
  BN_bin2bn(serial.data(), serial.size(), number.get());
  BN_to_ASN1_INTEGER(number.get(), X509_get_serialNumber(&certificate));
  constexpr long kDay = 86'400;
  return X509_set_version(&certificate, 2) == 1 &&
         X509_gmtime_adj(X509_getm_notBefore(&certificate), -kDay) != nullptr &&  // clocks differ
         X509_gmtime_adj(X509_getm_notAfter(&certificate), kDay * days) != nullptr &&
         X509_set_pubkey(&certificate, &key) == 1 &&
         X509_NAME_add_entry_by_txt(X509_get_subject_name(&certificate), "CN", MBSTRING_UTF8,
                                    reinterpret_cast<const unsigned char*>(name.c_str()), -1, -1,
                                    0) == 1;
}

// Null: OpenSSL cannot.
SslCertificate MakeAuthority(EVP_PKEY& key) {
  SslCertificate made(X509_new());
  const bool good =
      made != nullptr && SetFacts(*made, "Troupe cluster", kAuthorityDays, key) &&
      X509_set_issuer_name(made.get(), X509_get_subject_name(made.get())) == 1 &&
      AddExtension(*made, *made, NID_basic_constraints, "critical,CA:TRUE,pathlen:0") &&
      AddExtension(*made, *made, NID_key_usage, "critical,keyCertSign,cRLSign") &&
      AddExtension(*made, *made, NID_subject_key_identifier, "hash") &&
      X509_sign(made.get(), &key, EVP_sha256()) > 0;
  return good ? std::move(made) : nullptr;
}

SslCertificate MakeNode(const std::string& host, std::uint32_t days, EVP_PKEY& key, X509& authority,
                        EVP_PKEY& authority_key) {
  SslCertificate made(X509_new());
  const std::string where = (IsNumeric(host) ? "IP:" : "DNS:") + host;
  const bool good = made != nullptr && SetFacts(*made, host, days, key) &&
                    X509_set_issuer_name(made.get(), X509_get_subject_name(&authority)) == 1 &&
                    AddExtension(*made, authority, NID_basic_constraints, "critical,CA:FALSE") &&
                    AddExtension(*made, authority, NID_ext_key_usage, "serverAuth,clientAuth") &&
                    AddExtension(*made, authority, NID_subject_alt_name, where) &&
                    AddExtension(*made, authority, NID_authority_key_identifier, "keyid") &&
                    X509_sign(made.get(), &authority_key, EVP_sha256()) > 0;
  return good ? std::move(made) : nullptr;
}

std::string TextOf(BIO& bytes) {
  char* data = nullptr;
  const long size = BIO_get_mem_data(&bytes, &data);
  return {data, static_cast<std::size_t>(size)};
}

std::string PemOf(X509& certificate) {
  const SslBytes bytes(BIO_new(BIO_s_mem()));
  PEM_write_bio_X509(bytes.get(), &certificate);
  return TextOf(*bytes);
}

std::string PemOf(EVP_PKEY& key) {
  const SslBytes bytes(BIO_new(BIO_s_mem()));
  PEM_write_bio_PrivateKey(bytes.get(), &key, nullptr, nullptr, 0, nullptr, nullptr);
  return TextOf(*bytes);
}

Status Write(const std::string& path, const std::string& text, bool is_private) {
  TROUPE_ASSIGN_OR_RETURN(AtomicFileWriter file, AtomicFileWriter::Create(path));
  if (is_private) TROUPE_RETURN_IF_ERROR(file.MakePrivate());
  TROUPE_RETURN_IF_ERROR(file.Append(std::as_bytes(std::span(text))));
  return file.Commit();
}

struct Signer {
  SslKey key;
  SslCertificate certificate;
};

Result<Signer> ReadAuthority(const std::string& certificate_path, const std::string& key_path) {
  TROUPE_ASSIGN_OR_RETURN(const std::string certificate, ReadWhole(certificate_path));
  TROUPE_ASSIGN_OR_RETURN(const std::string key, ReadWhole(key_path));
  const SslBytes certificate_bytes(
      BIO_new_mem_buf(certificate.data(), static_cast<int>(certificate.size())));
  const SslBytes key_bytes(BIO_new_mem_buf(key.data(), static_cast<int>(key.size())));
  Signer signer{.key = SslKey(PEM_read_bio_PrivateKey(key_bytes.get(), nullptr, nullptr, nullptr)),
                .certificate = SslCertificate(
                    PEM_read_bio_X509(certificate_bytes.get(), nullptr, nullptr, nullptr))};
  if (signer.key == nullptr || signer.certificate == nullptr ||
      X509_check_private_key(signer.certificate.get(), signer.key.get()) != 1) {
    return InvalidArgument("{}, {}: not PEM files of a certificate and its key", certificate_path,
                           key_path);
  }
  return signer;
}

Result<Signer> OpenAuthority(const std::string& folder, std::vector<std::string>& written) {
  const std::string certificate_path = folder + "/authority.pem";
  const std::string key_path = folder + "/authority.key";
  std::error_code ignored;
  if (std::filesystem::exists(certificate_path, ignored)) {
    return ReadAuthority(certificate_path, key_path);
  }
  Signer signer{.key = SslKey(EVP_EC_gen("P-256")), .certificate = nullptr};
  if (signer.key != nullptr) signer.certificate = MakeAuthority(*signer.key);
  if (signer.certificate == nullptr) return SslProblem(certificate_path);
  TROUPE_RETURN_IF_ERROR(Write(key_path, PemOf(*signer.key), /*is_private=*/true));
  TROUPE_RETURN_IF_ERROR(Write(certificate_path, PemOf(*signer.certificate), false));
  written.insert(written.end(), {certificate_path, key_path});
  return signer;
}

// Empty: it is neither a name nor an address.
std::string HostIn(const GENERAL_NAME& name) {
  int kind = 0;
  const void* const value = GENERAL_NAME_get0_value(&name, &kind);
  if (kind != GEN_DNS && kind != GEN_IPADD) return {};
  const auto* const text = static_cast<const ASN1_STRING*>(value);
  const unsigned char* const data = ASN1_STRING_get0_data(text);
  const auto size = static_cast<std::size_t>(ASN1_STRING_length(text));
  if (kind == GEN_DNS) return {reinterpret_cast<const char*>(data), size};
  if (size != sizeof(in_addr) && size != sizeof(in6_addr)) return {};
  std::array<char, INET6_ADDRSTRLEN> numbers = {};
  ::inet_ntop(size == sizeof(in_addr) ? AF_INET : AF_INET6, data, numbers.data(), numbers.size());
  return numbers.data();
}

}  // namespace

Result<std::vector<std::string>> HostsOfCertificate(const std::string& path) {
  TROUPE_ASSIGN_OR_RETURN(const std::string text, ReadWhole(path));
  const SslBytes bytes(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
  const SslCertificate certificate(PEM_read_bio_X509(bytes.get(), nullptr, nullptr, nullptr));
  if (certificate == nullptr) return InvalidArgument("{}: not a PEM file of a certificate", path);
  const std::unique_ptr<GENERAL_NAMES, FreeBy<GENERAL_NAMES_free>> names(
      static_cast<GENERAL_NAMES*>(
          X509_get_ext_d2i(certificate.get(), NID_subject_alt_name, nullptr, nullptr)));
  std::vector<std::string> hosts;
  for (int i = 0; names != nullptr && i < sk_GENERAL_NAME_num(names.get()); ++i) {
    std::string host = HostIn(*sk_GENERAL_NAME_value(names.get(), i));
    if (!host.empty()) hosts.push_back(std::move(host));
  }
  return hosts;
}

Result<std::vector<std::string>> WriteCertificates(const CertificateOptions& options) {
  for (const std::string& host : options.hosts) {
    TROUPE_RETURN_IF_ERROR(CheckHost(host));
    for (const char* const ending : {".pem", ".key"}) {
      const std::string path = options.folder + "/" + host + ending;
      std::error_code ignored;
      if (!std::filesystem::exists(path, ignored)) continue;
      return Error(Code::kFailedPrecondition, "{} exists already", path);
    }
  }
  std::vector<std::string> written;
  TROUPE_ASSIGN_OR_RETURN(const Signer signer, OpenAuthority(options.folder, written));
  for (const std::string& host : options.hosts) {
    const std::string path = options.folder + "/" + host;
    const SslKey key(EVP_EC_gen("P-256"));
    const SslCertificate certificate =
        key == nullptr ? nullptr
                       : MakeNode(host, options.days, *key, *signer.certificate, *signer.key);
    if (certificate == nullptr) return SslProblem(path);
    TROUPE_RETURN_IF_ERROR(Write(path + ".key", PemOf(*key), /*is_private=*/true));
    TROUPE_RETURN_IF_ERROR(Write(path + ".pem", PemOf(*certificate), false));
    written.insert(written.end(), {path + ".pem", path + ".key"});
  }
  return written;
}

}  // namespace troupe
