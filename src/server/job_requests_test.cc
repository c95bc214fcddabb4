#include "server/job_requests.h"

#include <gtest/gtest.h>

namespace troupe {
namespace {

Request WithPrompt(std::size_t tokens) {
  Request request;
  request.prompt = std::vector<TokenId>(tokens, 7);
  request.sampling.seed = 5;
  request.stop = {"END"};
  return request;
}

TEST(JobRequests, AnswersOfAPromptHaveSeedsThatFollowOneAnother) {
  JobRequests job{.common = WithPrompt(0), .prompts = {{1}, {2, 3}}, .n = 2};
  ASSERT_EQ(job.count(), 4u);
  for (std::size_t i = 0; i < 4; ++i) {
    for (int time = 0; time < 2; ++time) {  // one that was refused is made again
      const Request made = job.Make(i);
      EXPECT_EQ(std::get<std::vector<TokenId>>(made.prompt), job.prompts[i / 2]);
      EXPECT_EQ(made.sampling.seed, 5 + i % 2);
      EXPECT_EQ(made.stop, job.common.stop);
    }
  }
}

TEST(JobRequests, TheOnlyOneTakesWhatThereIs) {
  JobRequests job = JobRequests::Of(WithPrompt(1000));
  EXPECT_EQ(job.LongestPrompt(), 1000u);
  const Request made = job.Make(0);
  EXPECT_EQ(std::get<std::vector<TokenId>>(made.prompt).size(), 1000u);
  EXPECT_TRUE(job.prompts.front().empty());
}

TEST(JobRequests, TakeMemoryForThoseThatAreUnderWayAlone) {
  const auto bytes = [](std::size_t n, std::size_t together) {
    return JobRequests::Of(WithPrompt(100'000), n).SizeInMemory(together).count();
  };
  constexpr std::size_t kPrompt = 400'000;
  EXPECT_LT(bytes(1, 4), kPrompt + 4096);
  EXPECT_GT(bytes(2, 4), 3 * kPrompt);
  EXPECT_LT(bytes(128, 4), 5 * kPrompt + 128 * 2048);
  JobRequests biased = JobRequests::Of(WithPrompt(1));
  for (TokenId id = 0; id < 1000; ++id) biased.common.sampling.logit_bias[id] = 1;
  EXPECT_GT(biased.SizeInMemory(1), 64'000_B);
  JobRequests stopped = JobRequests::Of(WithPrompt(1));
  stopped.common.stop = {std::string(100'000, 's')};
  EXPECT_GT(stopped.SizeInMemory(1), 1'000'000_B);  // with the table by which it is looked for
}

}  // namespace
}  // namespace troupe
