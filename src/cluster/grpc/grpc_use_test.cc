// What is left of gRPC in a process after its last user: nothing.
#include "cluster/grpc/grpc_use.h"

#include <gmock/gmock.h>
#include <grpc/grpc.h>
#include <grpcpp/channel.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/security/credentials.h>
#include <grpcpp/support/channel_arguments.h>
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

namespace troupe {
namespace {

using testing::Contains;
using testing::StartsWith;

// But for the one that has ended all others, and goes by itself.
std::vector<std::string> ThreadsOfThisProcess() {
  std::vector<std::string> names;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    std::string name;
    std::getline(std::ifstream(task.path() / "comm"), name);
    if (!name.empty() && name != "grpc_shutdown") names.push_back(name);
  }
  return names;
}

// Nobody listens on port 1 of this machine, so it is in the pause after a failed attempt.
std::shared_ptr<grpc::Channel> ChannelThatFailed() {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 300);
  auto channel =
      grpc::CreateCustomChannel("127.0.0.1:1", grpc::InsecureChannelCredentials(), arguments);
  const auto end = std::chrono::system_clock::now() + std::chrono::seconds(60);
  for (auto state = channel->GetState(true); state != GRPC_CHANNEL_TRANSIENT_FAILURE;
       state = channel->GetState(true)) {
    if (!channel->WaitForStateChange(state, end)) return nullptr;
  }
  return channel;
}

TEST(GrpcUseTest, ThreadsOfGrpcHaveEndedOnceTheLastUseIsOver) {
  const std::vector<std::string> before = ThreadsOfThisProcess();
  {
    const GrpcUse use;
    const std::shared_ptr<grpc::Channel> channel = ChannelThatFailed();
    ASSERT_NE(channel, nullptr);
    EXPECT_THAT(ThreadsOfThisProcess(), Contains(StartsWith("event_engine")));
  }
  EXPECT_EQ(grpc_is_initialized(), 0);
  EXPECT_EQ(ThreadsOfThisProcess(), before);
}

TEST(GrpcUseTest, AnEarlierEndOfOneUseTakesNothingFromAnother) {
  const GrpcUse use;
  const std::shared_ptr<grpc::Channel> channel = ChannelThatFailed();
  ASSERT_NE(channel, nullptr);
  { const GrpcUse another; }
  EXPECT_NE(grpc_is_initialized(), 0);
  EXPECT_EQ(channel->GetState(false), GRPC_CHANNEL_TRANSIENT_FAILURE);
}

}  // namespace
}  // namespace troupe
