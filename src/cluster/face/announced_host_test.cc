#include "cluster/face/announced_host.h"

#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "cluster/face/certificates.h"
#include "testing/temp_folder.h"

namespace troupe {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class AnnouncedHost : public testing::Test {
 protected:
  std::string CertificateOf(const std::string& host) {
    EXPECT_TRUE(WriteCertificates({.folder = folder_.PathOf("."), .hosts = {host}}).ok());
    return folder_.PathOf("./" + host + ".pem");
  }

  TempFolder folder_;
};

TEST_F(AnnouncedHost, IsTheAddressThatWasFoundIfTheCertificateNamesIt) {
  EXPECT_EQ(HostToAnnounce("192.0.2.5", CertificateOf("192.0.2.5")).value(), "192.0.2.5");
  EXPECT_EQ(HostToAnnounce("2001:db8::1", CertificateOf("2001:db8::1")).value(), "2001:db8::1");
}

TEST_F(AnnouncedHost, IsTheCertificatesNameOfThisMachineIfNot) {
  EXPECT_EQ(HostToAnnounce("127.0.0.1", CertificateOf("localhost")).value(), "localhost");
  EXPECT_EQ(HostToAnnounce("192.0.2.5", CertificateOf("127.0.0.1")).status().message(),
            fmt::format("{} names 127.0.0.1, not 192.0.2.5: give --peer-address 127.0.0.1",
                        folder_.PathOf("./127.0.0.1.pem")))
      << "other machines would find themselves there";
}

TEST_F(AnnouncedHost, ACertificateOfAnotherMachineIsOneClearLine) {
  const std::string path = CertificateOf("192.0.2.1");
  EXPECT_EQ(HostToAnnounce("127.0.0.1", path).status().message(),
            path + " names 192.0.2.1, not 127.0.0.1: give --peer-address 192.0.2.1");
  const std::string authority = folder_.PathOf("./authority.pem");
  EXPECT_THAT(HostToAnnounce("127.0.0.1", authority).status().message(),
              HasSubstr("authority.pem names no host"));
  std::ofstream(folder_.PathOf("torn.pem")) << "-----BEGIN CERTIFICATE-----\nMIIB\n";
  for (const char* name : {"torn.pem", "authority.key", "none.pem"}) {
    EXPECT_THAT(HostToAnnounce("127.0.0.1", folder_.PathOf(name)).status().message(),
                HasSubstr(name));
  }
}

TEST_F(AnnouncedHost, HostsOfACertificateAreReadAsTheyWereWritten) {
  for (const char* host : {"a.lan", "10.0.0.1", "::1"}) {
    EXPECT_THAT(HostsOfCertificate(CertificateOf(host)).value(), ElementsAre(host));
  }
}

}  // namespace
}  // namespace troupe
