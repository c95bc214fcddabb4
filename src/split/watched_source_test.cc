#include "split/watched_source.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

namespace troupe {
namespace {

// Says when it is asked to begin and to stop, and keeps what to tell.
class ToldSource final : public TokenSource {
 public:
  explicit ToldSource(std::vector<std::string>& said) : said_(said) {}

  Stop Start(const RunAsk&, RunEvents events) override {
    said_.emplace_back("start");
    events_ = std::move(events);
    return [this] { said_.emplace_back("stop"); };
  }
  RunEvents events_;

 private:
  std::vector<std::string>& said_;
};

// What runs there unasked leaves before a run begins, whichever it is of an answer or of a draft.
TEST(WatchedSource, SomebodyIsToldBeforeEachRunBeginsAndWhenItHasBegunAndIsOver) {
  std::vector<std::string> said;
  ToldSource told(said);
  WatchedSource watched(
      told, [&] { said.emplace_back("before"); }, [&] { said.emplace_back("change"); });
  const auto start = [&] {
    return watched.Start({},
                         {.on_end = [&](FinishReason, const Usage&) { said.emplace_back("end"); },
                          .on_failure = [&](const Status&) { said.emplace_back("failure"); }});
  };
  (void)start();
  EXPECT_THAT(said, testing::ElementsAre("before", "start", "change"));
  told.events_.on_end(FinishReason::kLength, {});
  EXPECT_THAT(said, testing::ElementsAre("before", "start", "change", "change", "end"));
  said.clear();
  start()();
  EXPECT_THAT(said, testing::ElementsAre("before", "start", "change", "stop", "change"));
  said.clear();
  (void)start();
  told.events_.on_failure(Status(Code::kInternal, "no"));
  EXPECT_THAT(said, testing::ElementsAre("before", "start", "change", "change", "failure"));
}

}  // namespace
}  // namespace troupe
