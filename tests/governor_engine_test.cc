// The governor in a running engine: where reading ahead makes tokens slower it rests, and the
// engine's report says so.
#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "expert/forecast/predictor.h"
#include "forge/synth.h"
#include "runtime/session.h"
#include "testing/temp_folder.h"

namespace troupe {
namespace {

// Takes far longer than a token to guess nothing.
class TakesLongToGuess final : public Predictor {
 public:
  explicit TakesLongToGuess(std::size_t& asked) : asked_(asked) {}
  std::string_view name() const override { return "slow"; }
  std::uint32_t forecast_layers() const override { return 1; }
  void OnChosen(const LayerChoices&) override {}
  std::vector<Guess> Predict(std::uint32_t, std::uint32_t, const GateScores&) override {
    ++asked_;
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    return {};
  }

 private:
  std::size_t& asked_;
};

TEST(GovernorInTheEngine, RestsWhereReadingAheadMakesTokensSlower) {
  const TempFolder folder;
  const std::string path = folder.PathOf("m.gguf");
  ASSERT_TRUE(Synthesize(*FindShape("tiny-qwen3moe"), {}, path).ok());
  std::size_t asked = 0;
  EngineOptions options;
  options.threads = 1;
  options.offload.slots = 8;  // of 16
  options.offload.make_predictor = [&](ExpertGrid) {
    return std::make_unique<TakesLongToGuess>(asked);
  };
  const auto engine = Engine::Open(path, options).value();
  Session session = Session::Create(*engine).value();
  const auto rests = [&] { return engine->offload_report()->prefetch->governor_rests; };
  std::int32_t token = 0;
  const auto feed = [&] {
    token = (token + 7) % 31;
    ASSERT_TRUE(session.Feed({&token, 1}).ok());
  };
  feed();
  EXPECT_EQ(rests(), 0u);
  EXPECT_GT(asked, 0u);
  // The first trial ends with the 14th token; where something else took as long meanwhile, there is
  // another 30 tokens later.
  for (int fed = 1; fed < 120 && rests() == 0; ++fed) feed();
  ASSERT_EQ(rests(), 1u);
  const std::size_t before = asked;
  for (int fed = 0; fed < 10; ++fed) feed();  // it rests for at least 32
  EXPECT_EQ(asked, before);
}

}  // namespace
}  // namespace troupe
