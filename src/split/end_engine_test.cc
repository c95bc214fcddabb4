#include "split/end_engine.h"

#include <gtest/gtest.h>

#include <chrono>
#include <deque>
#include <functional>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "api/tiny_model_for_test.h"
#include "base/mutex.h"
#include "forge/synth.h"
#include "testing/temp_folder.h"

namespace troupe {
namespace {

TEST(EndEngine, ForgetsWhatItHasAnsweredWhereItsPrefixCacheHasGivenThatUp) {
  const std::unique_ptr<Model> model = OpenTiny();
  const MonotonicClock clock;
  Mutex mu;
  std::deque<std::function<void()>> posted;
  EndEngine engine(
      *model, clock,
      [&](std::function<void()> call) {
        const MutexLock lock(mu);
        posted.push_back(std::move(call));
      },
      /*exact=*/true);
  KnownPrefixes in_the_cloud;
  KnownPrefixes* const known = engine.KnownIn(Side::kEnd, in_the_cloud);
  ASSERT_NE(known, nullptr);
  std::vector<TokenId> text(80);
  for (std::size_t i = 0; i < text.size(); ++i) text[i] = static_cast<TokenId>(10 + i);
  known->Remember("", text);  // long ago: others have had its pages since
  in_the_cloud.Remember("", text);
  const std::size_t kept = known->Kept("", text);
  EXPECT_EQ(kept, 64u);
  Request request{.max_tokens = 2};
  request.prompt = text;
  request.ignore_end = true;
  bool is_over = false;
  (void)engine.own().Start({.request = std::move(request), .kept = kept},
                           {.on_heard = [] {},
                            .on_read = [](std::size_t, std::size_t) {},
                            .on_tokens = [](std::span<const TokenId>) {},
                            .on_end = [&](FinishReason, const Usage&) { is_over = true; },
                            .on_failure =
                                [&](const Status& why) {
                                  ADD_FAILURE() << why.message();
                                  is_over = true;
                                }});
  for (int i = 0; !is_over; ++i) {
    ASSERT_LT(i, 30'000);
    std::function<void()> call;
    {
      const MutexLock lock(mu);
      if (!posted.empty()) {
        call = std::move(posted.front());
        posted.pop_front();
      }
    }
    if (call) {
      call();
    } else {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }
  EXPECT_EQ(known->texts(), 0u);
  EXPECT_EQ(in_the_cloud.texts(), 1u) << "that is another cache";
  model->Close();
}

TEST(EndEngine, OfAModelWithStatesNothingIsRememberedInEitherPlace) {
  const TempFolder folder;
  SynthOptions options;
  options.layout.mix.type = TensorType::kQ8_0;
  const std::string path = folder.PathOf("m.gguf");
  ASSERT_TRUE(Synthesize(*FindShape("tiny-lfm2moe"), options, path).ok());
  const MonotonicClock clock;
  KnownPrefixes in_the_cloud;
  const auto remembers = [&](const std::string& file, bool has_cache, Side place) {
    const std::unique_ptr<Model> model =
        Model::Open(file, {.context = 96, .threads = 2, .prefix_cache = has_cache}).value();
    EndEngine engine(
        *model, clock, [](const std::function<void()>&) {}, /*exact=*/true);
    const KnownPrefixes* const known = engine.KnownIn(place, in_the_cloud);
    model->Close();
    return known != nullptr;
  };
  EXPECT_FALSE(remembers(path, true, Side::kEnd));
  EXPECT_FALSE(remembers(path, true, Side::kCloud));
  EXPECT_TRUE(remembers(kPath, true, Side::kEnd));
  EXPECT_TRUE(remembers(kPath, true, Side::kCloud));
  EXPECT_FALSE(remembers(kPath, false, Side::kEnd));
  EXPECT_TRUE(remembers(kPath, false, Side::kCloud)) << "it may have a cache";
}

}  // namespace
}  // namespace troupe
