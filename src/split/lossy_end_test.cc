// An end that was opened to lose quality, beside a cloud whose answers are exact.
#include <gtest/gtest.h>

#include <chrono>
#include <future>
#include <thread>

#include "split/end_and_cloud_for_test.h"

namespace troupe {
namespace {

class LossyEndTest : public EndAndCloudTest {
 protected:
  void SetUp() override {
    model_ = OpenTinyWithFew(
        {.sequences = 2, .answer_rules = true, .lossiness = Chain{"smoe:alpha=0.5+drop"}});
    ASSERT_NE(model_, nullptr);
  }
  static Request Long(std::uint64_t seed) {
    Request request = Ask("The kernel", 60, seed);
    request.ignore_end = true;
    return request;
  }
};

TEST_F(LossyEndTest, WhereTheCloudMayBeAskedTheEndsOwnTokensAreExact) {
  OpenCloud();
  OpenEnd({.rule = "cloud"});
  WaitFor(CloudWatch::State::kThere);
  std::promise<void> goes_on;
  ModelAccess::Between(*served_.model, [until = goes_on.get_future().share()] { until.wait(); });
  Generation generation = end_->Start(Long(3), {}).value();
  while (end_->State().begun[0] + end_->State().begun[1] == 0) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  ASSERT_EQ(end_->State().begun[1], 1u);
  std::thread cut([this] { server_.reset(); });
  WaitFor(CloudWatch::State::kAway);
  goes_on.set_value();
  cut.join();
  const Result<Answer> answer = generation.Wait();
  ASSERT_TRUE(answer.ok()) << answer.status().message();
  EXPECT_EQ(answer->tokens, OpenTiny()->Start(Long(3))->Wait()->tokens);
  EXPECT_EQ(end_->State().flow.tokens, (std::array<std::uint64_t, 2>{60, 0}));
  EXPECT_EQ(model_->metrics().experts.NotExact(), 0u);
}

TEST_F(LossyEndTest, WithPlaceEndAnswersLoseWhatTheyMayAndTheCloudHasNoPartInThem) {
  OpenCloud();
  OpenEnd({.rule = "end"});
  WaitFor(CloudWatch::State::kThere);
  for (std::uint64_t seed = 0; seed < 4; ++seed) {
    EXPECT_TRUE(end_->Start(Long(seed), {})->Wait().ok());
  }
  EXPECT_GT(model_->metrics().experts.NotExact(), 0u);
  EXPECT_EQ(end_->State().flow.tokens, (std::array<std::uint64_t, 2>{240, 0}));
}

}  // namespace
}  // namespace troupe
