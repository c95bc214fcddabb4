#include "runtime/ticket.h"

#include <gtest/gtest.h>

#include <limits>
#include <memory>
#include <thread>

namespace troupe {
namespace {

constexpr Nanos kMillisecond = 1'000'000;

Answer Saying(std::string text) {
  Answer result;
  result.text = std::move(text);
  return result;
}

TEST(Ticket, WaitsNoLongerThanAsked) {
  Ticket ticket(1);
  const MonotonicClock clock;
  const Nanos start = clock.Now();
  EXPECT_FALSE(ticket.WaitFor(20 * kMillisecond).has_value());
  EXPECT_GE(clock.Now() - start, 20 * kMillisecond);
  EXPECT_FALSE(ticket.WaitFor(0).has_value());
  EXPECT_FALSE(ticket.WaitFor(-1).has_value());
  ticket.Finish(Saying("x"));
  EXPECT_EQ(ticket.WaitFor(0)->value().text, "x");
}

TEST(Ticket, AWaitEndsWithTheAnswerHoweverLongItMayTake) {
  Ticket ticket(1);
  std::thread engine([&] { ticket.Finish(Saying("x")); });
  EXPECT_EQ(ticket.WaitFor(std::numeric_limits<Nanos>::max())->value().text, "x");
  EXPECT_EQ(ticket.Wait()->text, "x");
  engine.join();
}

TEST(Ticket, TheEnginesThreadWaitsForNothingButAnAnswerThatIsThere) {
  Ticket ticket(1, std::this_thread::get_id());
  EXPECT_EQ(ticket.WaitFor(kMillisecond)->status().code(), Code::kFailedPrecondition);
  EXPECT_EQ(ticket.Wait().status().code(), Code::kFailedPrecondition);
  ticket.Finish(Saying("x"));
  EXPECT_EQ(ticket.WaitFor(kMillisecond)->value().text, "x");
  EXPECT_EQ(ticket.Wait()->text, "x");
}

TEST(Ticket, TellsOfItsEndOnceWaitWouldNotWait) {
  int ends = 0;
  std::unique_ptr<Ticket> ticket;
  const auto held = std::make_shared<int>(0);
  ticket = std::make_unique<Ticket>(1, std::this_thread::get_id(),
                                    [&, held](const Result<Answer>& answer) {
                                      ++ends;
                                      EXPECT_TRUE(ticket->done());
                                      EXPECT_EQ(ticket->Wait()->text, answer->text);
                                      EXPECT_EQ(answer->text, "x");
                                    });
  EXPECT_EQ(held.use_count(), 2);
  ticket->Finish(Saying("x"));
  EXPECT_EQ(ends, 1);
  EXPECT_EQ(held.use_count(), 1) << "let go after the end";
}

}  // namespace
}  // namespace troupe
