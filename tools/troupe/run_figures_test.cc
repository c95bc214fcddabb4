#include "troupe/run_figures.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace troupe {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

RunFigures ARun() {
  RunFigures run{.tokens = 11, .ended = "length", .usage = {}, .peak = 32_MiB};
  run.usage.prompt_tokens = 8;
  run.usage.prefill_seconds = 0.1;
  run.usage.first_token_seconds = 0.034;
  run.usage.decode_steps = 10;
  run.usage.decode_seconds = 0.1;
  run.usage.decode_pass_seconds = 0.1;
  return run;
}

RunFigures AnOffloadedRun() {
  RunFigures run = ARun();
  run.slots = 107;
  run.experts = 256;
  run.usage.expert_uses = 400;
  run.usage.experts.bytes_read = (51_MiB).count();
  run.usage.experts.reads = 2484;
  run.usage.experts.stall_seconds = 0.06;
  ExpertUsage& decode = run.usage.decode_experts;
  decode.hits = 3;
  decode.misses = 1;
  decode.bytes_read = (10_MiB).count();
  decode.reading_seconds = 0.08;
  decode.stall_seconds = 0.06;
  return run;
}

TEST(RunFigures, BeginWithWhatTheRunDidAndHowFast) {
  EXPECT_EQ(RunSentence(ARun()),
            "[11 tokens at 100.0 tokens/s; peak memory 32.0 MiB; ended: length]");
  EXPECT_EQ(RunSentence(AnOffloadedRun()),
            "[11 tokens at 100.0 tokens/s, 60 % of the time waiting for experts; peak memory 32.0 "
            "MiB; ended: length]");
}

TEST(RunFigures, OfOneTokenThereIsNoSpeed) {
  RunFigures run = ARun();
  run.tokens = 1;
  EXPECT_EQ(RunSentence(run), "[1 token; peak memory 32.0 MiB; ended: length]");
  run.tokens = 0;
  EXPECT_EQ(RunDetailLines(run), "");
}

TEST(RunFigures, HaveALineForEachKindBehindTheSentence) {
  EXPECT_EQ(RunDetailLines(ARun()),
            "[prompt: 8 tokens at 80.0 tokens/s, first token of the answer after 34 ms]\n");
  EXPECT_EQ(RunDetailLines(AnOffloadedRun()),
            "[prompt: 8 tokens at 80.0 tokens/s, first token of the answer after 34 ms]\n"
            "[experts: 107 of 256 in memory, 51.0 MiB read in 2484 reads, 0.06 s waiting for "
            "them]\n"
            "[each token: 75.0 % cache hits, 1.0 MiB read, 4.0 ms computing (2.0 ms of it while "
            "reading), 6.0 ms waiting]\n");
  RunFigures drafted = ARun();
  drafted.usage.speculation = {.checks = 2, .drafted = 5, .accepted = 3};
  EXPECT_THAT(RunDetailLines(drafted), HasSubstr("[drafts: 3 of 5 drafted tokens right]\n"));
}

TEST(RunFigures, TellWhatWasPrefetchedWhereSomethingWas) {
  RunFigures run = AnOffloadedRun();
  EXPECT_THAT(RunDetailLines(run), Not(HasSubstr("prefetch")));
  ExpertUsage& decode = run.usage.decode_experts;
  decode.prefetches = 4;
  decode.prefetch_useful = 2;
  decode.prefetch_late = 1;
  decode.prefetch_waiting = 1;
  decode.foresight.needed = 10;
  decode.foresight.likely = 6;
  decode.foresight.in_time = 5;
  EXPECT_THAT(RunDetailLines(run),
              HasSubstr("[prefetch: of the experts that had to be loaded 60.0 % were predicted, "
                        "50.0 % in time; of those loaded ahead 75.0 % were used]\n"));
}

TEST(RunFigures, NeverTellOfMorePrefetchesUsedThanThereWere) {
  RunFigures run = AnOffloadedRun();
  ExpertUsage& decode = run.usage.decode_experts;
  decode.prefetches = 13;
  decode.prefetch_useful = 18;  // most of them begun while the prompt was read
  decode.prefetch_wasted = 2;
  decode.prefetch_waiting = -7;
  EXPECT_THAT(RunDetailLines(run), HasSubstr("of those loaded ahead 90.0 % were used]\n"));
}

TEST(RunFigures, SayWhatIsNotExact) {
  RunFigures run = AnOffloadedRun();
  EXPECT_EQ(RunLossLines(run), "");
  run.usage.experts.substituted = 7;
  run.usage.experts.dropped = 2;
  EXPECT_EQ(RunLossLines(run), "[not exact: of 400 expert uses 7 substituted, 2 dropped]\n");
  RunFigures grouped = ARun();
  grouped.usage.experts.grouped = 5;
  grouped.gate = "the best 2 groups";
  EXPECT_EQ(RunLossLines(grouped), "[not exact: of 0 expert uses 5 chosen by the best 2 groups]\n");
}

}  // namespace
}  // namespace troupe
