#include "server/http/host_fault.h"

#include <gtest/gtest.h>

namespace troupe {
namespace {

TEST(HostFault, SaysThatThereIsNoSuchHostOrThatNobodyCouldBeAsked) {
  EXPECT_EQ(HostFault("a.lan", boost::asio::error::host_not_found), "there is no host 'a.lan'");
  EXPECT_EQ(HostFault("a.lan", boost::asio::error::host_not_found_try_again),
            "host 'a.lan': its name cannot be looked up now");
  EXPECT_EQ(HostFault("a.lan", boost::asio::error::no_memory),
            "host 'a.lan': Cannot allocate memory");
}

}  // namespace
}  // namespace troupe
