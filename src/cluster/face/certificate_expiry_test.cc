#include "cluster/face/certificate_expiry.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <ctime>

#include "cluster/face/certificates.h"
#include "testing/temp_folder.h"

namespace troupe {
namespace {

TEST(CertificateExpiry, IsReadFromTheCertificate) {
  const TempFolder folder;
  ASSERT_TRUE(WriteCertificates({.folder = folder.PathOf("."), .hosts = {"a"}, .days = 20}).ok());
  const std::int64_t expires = ExpiryOfCertificate(folder.PathOf("a.pem")).value();
  EXPECT_NEAR(static_cast<double>(expires - std::time(nullptr)), 20 * 86'400, 3'600);
  EXPECT_FALSE(ExpiryOfCertificate(folder.PathOf("a.key")).ok());
}

TEST(CertificateExpiry, IsSaidWithinThirtyDaysAndTheEndAfterIt) {
  constexpr std::int64_t kNow = 1'700'000'000, kDay = 86'400;
  EXPECT_EQ(RemarkOnExpiry("a.pem", kNow + 31 * kDay, kNow).value(), "");
  EXPECT_EQ(RemarkOnExpiry("a.pem", kNow + 29 * kDay, kNow).value(),
            "a.pem expires in 29 days, on 2023-12-13 22:13 UTC");
  const Result<std::string> ended = RemarkOnExpiry("a.pem", kNow, kNow);
  ASSERT_FALSE(ended.ok());
  EXPECT_THAT(ended.status().message(),
              testing::HasSubstr("a.pem has expired, on 2023-11-14 22:13 UTC"));
}

}  // namespace
}  // namespace troupe
