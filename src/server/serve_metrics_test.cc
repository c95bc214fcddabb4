// What /metrics says of sums that are known: each figure must come from where its name says.
#include "server/serve_metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace troupe {
namespace {

using testing::HasSubstr;
using testing::Not;

class ServeMetricsTest : public testing::Test {
 protected:
  std::string Page() const { return metrics_.Page(model_, plan_, {.transport = transport_}); }
  // That a line says so.
  void ExpectLine(const std::string& line) const {
    EXPECT_THAT("\n" + Page(), HasSubstr("\n" + line + "\n"));
  }

  ServeMetrics metrics_;
  Metrics model_;
  Plan plan_;
  HttpCounters transport_;
};

TEST_F(ServeMetricsTest, RequestsAreToldByEndpointAndStatus) {
  metrics_.CountRequest("/tokenize", 200);
  metrics_.CountRequest("other", 404);
  metrics_.CountRequest("/tokenize", 200);
  metrics_.OnEnd("/v1/completions", {.status = OkStatus(), .cancelled = true, .choices = {}});
  metrics_.OnEnd("/v1/completions",
                 {.status = Status(Code::kUnavailable, "full").WithRetryAfter(1), .choices = {}});
  ExpectLine(R"(troupe_requests_total{endpoint="/tokenize",status="200"} 2)");
  ExpectLine(R"(troupe_requests_total{endpoint="other",status="404"} 1)");
  ExpectLine(R"(troupe_requests_total{endpoint="/v1/completions",status="499"} 1)");
  ExpectLine(R"(troupe_requests_total{endpoint="/v1/completions",status="429"} 1)");
}

TEST_F(ServeMetricsTest, TimesAreOfAnswersThatCameToTheirEnd) {
  JobEnd end{.status = OkStatus(), .choices = {{}}, .first_piece_seconds = 0.02, .seconds = 3};
  end.choices.front().answer.usage.queue_seconds = 0.3;
  metrics_.OnEnd("/v1/completions", end);
  end.status = DataLoss("an expert cannot be read");
  metrics_.OnEnd("/v1/completions", end);
  metrics_.OnGap(0.004);
  ExpectLine("troupe_time_to_first_token_seconds_count 1");
  ExpectLine(R"(troupe_time_to_first_token_seconds_bucket{le="0.025"} 1)");
  ExpectLine(R"(troupe_time_between_tokens_seconds_bucket{le="0.005"} 1)");
  ExpectLine(R"(troupe_time_between_tokens_seconds_bucket{le="0.0025"} 0)");
  ExpectLine("troupe_queue_seconds_sum 0.3");
  ExpectLine("troupe_request_seconds_sum 3");
}

TEST_F(ServeMetricsTest, RequestsAndTokensOfTheModelAreTold) {
  model_.requests_waiting = 1;
  model_.requests_reading = 2;
  model_.requests_decoding = 3;
  model_.requests_finished = 4;
  model_.requests_cancelled = 5;
  model_.requests_failed = 6;
  model_.requests_refused = 7;
  model_.prompt_tokens = 80;
  model_.generated_tokens = 90;
  model_.prefix_cache = {
      .hits = 10, .cached_tokens = 11, .given_up_tokens = 12, .kept_tokens = 13, .most_tokens = 14};
  for (const char* line :
       {R"(troupe_requests_now{state="queued"} 1)", R"(troupe_requests_now{state="reading"} 2)",
        R"(troupe_requests_now{state="decoding"} 3)", R"(troupe_answers_total{end="finished"} 4)",
        R"(troupe_answers_total{end="cancelled"} 5)", R"(troupe_answers_total{end="failed"} 6)",
        R"(troupe_answers_total{end="refused"} 7)", R"(troupe_tokens_total{kind="prompt"} 80)",
        R"(troupe_tokens_total{kind="generated"} 90)", R"(troupe_tokens_total{kind="cached"} 11)",
        "troupe_prefix_cache_hits_total 10", "troupe_prefix_cache_given_up_tokens_total 12",
        "troupe_prefix_cache_tokens 13", "troupe_kv_tokens 14"}) {
    ExpectLine(line);
  }
}

TEST_F(ServeMetricsTest, DraftsAreToldByHowTheyEnded) {
  model_.speculation = {.checks = 3, .drafted = 20, .accepted = 13, .saved_seconds = -0.5};
  model_.draft_rest_passes = 24;
  model_.draft_put_right_seconds = -0.25;
  for (const char* line :
       {R"(troupe_drafted_tokens_total{end="accepted"} 13)",
        R"(troupe_drafted_tokens_total{end="rejected"} 7)", "troupe_draft_checks_total 3",
        "troupe_draft_saved_seconds -0.5", "troupe_draft_rest_passes_total 24",
        "troupe_draft_put_right_seconds -0.25"}) {
    ExpectLine(line);
  }
}

TEST_F(ServeMetricsTest, DraftsAreToldByWhoGuessed) {
  model_.speculation.by_source[static_cast<std::size_t>(DraftSource::kModel)] = {.drafted = 9,
                                                                                 .accepted = 6};
  model_.speculation.drafting_seconds = 0.25;
  for (const char* line : {R"(troupe_drafter_tokens_total{drafter="model",end="accepted"} 6)",
                           R"(troupe_drafter_tokens_total{drafter="model",end="rejected"} 3)",
                           R"(troupe_drafter_tokens_total{drafter="lookup",end="accepted"} 0)",
                           "troupe_drafting_seconds_total 0.25"}) {
    ExpectLine(line);
  }
}

TEST_F(ServeMetricsTest, PassesAreToldWithTheirRowsAndTheirTime) {
  for (const std::uint64_t rows : {1, 1, 4, 5000}) model_.pass_rows.Add(rows);
  model_.passes = 4;
  model_.failed_passes = 2;
  model_.abandoned_passes = 3;
  model_.pass_seconds = 1.5;
  model_.rule_seconds = 0.25;
  ExpectLine(R"(troupe_pass_rows_bucket{le="1"} 2)");
  ExpectLine(R"(troupe_pass_rows_bucket{le="2"} 2)");
  ExpectLine(R"(troupe_pass_rows_bucket{le="4"} 3)");
  ExpectLine(R"(troupe_pass_rows_bucket{le="4096"} 3)");
  ExpectLine(R"(troupe_pass_rows_bucket{le="+Inf"} 4)");
  ExpectLine("troupe_pass_rows_sum 5006");
  ExpectLine("troupe_pass_rows_count 4");
  ExpectLine("troupe_passes_total 4");
  ExpectLine("troupe_failed_passes_total 2");
  ExpectLine("troupe_abandoned_passes_total 3");
  ExpectLine("troupe_pass_seconds_total 1.5");
  ExpectLine("troupe_rule_seconds_total 0.25");
}

TEST_F(ServeMetricsTest, PagesOfTheKvCacheAreToldByWhoHasThem) {
  model_.kv_pages = {.all = 6, .free = 1, .held = 2, .cached = 3, .tokens_each = 256};
  ExpectLine(R"(troupe_kv_pages{state="free"} 1)");
  ExpectLine(R"(troupe_kv_pages{state="requests"} 2)");
  ExpectLine(R"(troupe_kv_pages{state="prefix_cache"} 3)");
  ExpectLine("troupe_kv_page_tokens 256");
}

TEST_F(ServeMetricsTest, AsksForExpertsAreToldByLayerAndByTier) {
  ExpertUsage& experts = model_.experts;
  experts.hits = 10;
  experts.misses = 5;
  experts.waited = 1;
  experts.loaded = 2;
  experts.loaded_low = 3;
  experts.elsewhere = 4;
  experts.card_hits = 6;
  experts.layers = {{}, {.hits = 7, .asks = 9}};
  for (const char* line : {R"(troupe_expert_asks_total{found="hit"} 10)",
                           R"(troupe_expert_asks_total{found="miss"} 5)",
                           R"(troupe_layer_expert_asks_total{layer="1",found="hit"} 7)",
                           R"(troupe_layer_expert_asks_total{layer="1",found="miss"} 2)",
                           R"(troupe_tier_expert_asks_total{tier="card"} 6)",
                           R"(troupe_tier_expert_asks_total{tier="memory"} 10)",
                           R"(troupe_tier_expert_asks_total{tier="loading"} 1)",
                           R"(troupe_tier_expert_asks_total{tier="disk"} 2)",
                           R"(troupe_tier_expert_asks_total{tier="disk_low_copy"} 3)",
                           R"(troupe_tier_expert_asks_total{tier="elsewhere"} 4)"}) {
    ExpectLine(line);
  }
  EXPECT_THAT(Page(), Not(HasSubstr(R"(layer="0")"))) << "a layer without experts";
}

TEST_F(ServeMetricsTest, ReadsPrefetchesAndInexactAnswersAreTold) {
  ExpertUsage& experts = model_.experts;
  experts.reads = 1;
  experts.bytes_read = 2;
  experts.verified = 6;
  experts.reading_seconds = 3.5;
  experts.stall_seconds = 4.5;
  experts.prefetch_useful = 5;
  experts.prefetch_late = 6;
  experts.prefetch_cancelled = 7;
  experts.prefetch_wasted = 8;
  experts.draft_reads = 20;
  experts.draft_reads_used = 15;
  experts.substituted = 9;
  experts.dropped = 10;
  experts.low_assignments = 11;
  experts.peer_bf16 = 12;
  experts.peer_q8 = 13;
  experts.grouped = 14;
  for (const char* line :
       {"troupe_reads_total 1", "troupe_read_bytes_total 2", "troupe_experts_verified_total 6",
        "troupe_reading_seconds_total 3.5", "troupe_stall_seconds_total 4.5",
        R"(troupe_prefetches_total{end="useful"} 5)", R"(troupe_prefetches_total{end="late"} 6)",
        R"(troupe_prefetches_total{end="cancelled"} 7)",
        R"(troupe_prefetches_total{end="wasted"} 8)", R"(troupe_draft_reads_total{end="used"} 15)",
        R"(troupe_draft_reads_total{end="unused"} 5)",
        R"(troupe_inexact_total{kind="substituted"} 9)",
        R"(troupe_inexact_total{kind="dropped"} 10)", R"(troupe_inexact_total{kind="low_copy"} 11)",
        R"(troupe_inexact_total{kind="peer_bf16"} 12)",
        R"(troupe_inexact_total{kind="peer_q8"} 13)",
        R"(troupe_inexact_total{kind="grouped"} 14)"}) {
    ExpectLine(line);
  }
}

TEST_F(ServeMetricsTest, WhatACardDidIsTold) {
  model_.experts.card_rows = 5;
  model_.experts.card_copies = 6;
  model_.experts.card_failures = 1;
  model_.card = {.name = "a card", .slots = 9, .held = 7};
  for (const char* line :
       {"troupe_card_rows_total 5", "troupe_card_copies_total 6", "troupe_card_failures_total 1",
        R"(troupe_card_slots{state="held"} 7)", R"(troupe_card_slots{state="free"} 2)",
        "troupe_card_vram_bytes 0", R"(troupe_experts{which="in_card"} 0)"}) {
    ExpectLine(line);
  }
}

TEST_F(ServeMetricsTest, HowWellNeededLoadsWereForeseenIsTold) {
  Foresight& foresight = model_.experts.foresight;
  foresight = {.needed = 20, .named = 15, .likely = 9, .in_time = 4};
  foresight.from[1] = {.named = 8, .likely = 5, .guesses = 7, .came_true = 3};
  for (const char* line :
       {"troupe_needed_loads_total 20", R"(troupe_predicted_loads_total{known="named"} 15)",
        R"(troupe_predicted_loads_total{known="likely"} 9)",
        R"(troupe_predicted_loads_total{known="in_time"} 4)",
        R"(troupe_predicted_loads_by_distance_total{layers_ahead="2",odds="likely"} 5)",
        R"(troupe_predicted_loads_by_distance_total{layers_ahead="2",odds="unlikely"} 3)",
        R"(troupe_likely_guesses_total{layers_ahead="2",came="true"} 3)",
        R"(troupe_likely_guesses_total{layers_ahead="2",came="false"} 4)"}) {
    ExpectLine(line);
  }
}

TEST_F(ServeMetricsTest, TheBudgetIsToldByPart) {
  plan_ = {.budget = Bytes(100),
           .program = Bytes(1),
           .dense = Bytes(2),
           .kv_cache = Bytes(3),
           .workspace = Bytes(4),
           .staging = Bytes(5),
           .prediction = Bytes(6),
           .experts = Bytes(7),
           .experts_in_memory = 8,
           .experts_in_all = 9};
  plan_.connections = Bytes(10);
  plan_.rules = Bytes(11);
  plan_.peers = Bytes(12);
  plan_.state = Bytes(13);
  plan_.draft = Bytes(14);
  const std::pair<const char*, int> parts[] = {
      {"program", 1}, {"dense", 2},      {"kv_cache", 3}, {"workspace", 4},
      {"staging", 5}, {"prediction", 6}, {"experts", 7},  {"connections", 10},
      {"rules", 11},  {"peers", 12},     {"state", 13},   {"draft", 14}};
  for (const auto& [part, bytes] : parts) {
    ExpectLine("troupe_memory_plan_bytes{part=\"" + std::string(part) + "\"} " +
               std::to_string(bytes));
  }
  ExpectLine("troupe_memory_budget_bytes 100");
  ExpectLine(R"(troupe_experts{which="in_memory"} 8)");
  ExpectLine(R"(troupe_experts{which="all"} 9)");
  EXPECT_THAT(Page(), Not(HasSubstr("process_resident_memory_bytes 0\n")));
}

TEST_F(ServeMetricsTest, EndsOfAnswersAreToldWithTheirTime) {
  const std::string page =
      metrics_.Page(model_, plan_, {.ends = {.done = 3, .seconds = 0.5}, .transport = transport_});
  EXPECT_THAT(page, HasSubstr("\ntroupe_answer_ends_total 3\n"));
  EXPECT_THAT(page, HasSubstr("\ntroupe_answer_ends_seconds_total 0.5\n"));
}

TEST_F(ServeMetricsTest, ConnectionsAreToldAndWhyTheServerEndedSome) {
  transport_ = {.accepted = 1,
                .malformed = 2,
                .refused = 3,
                .no_room = 4,
                .timed_out = 5,
                .too_slow = 6,
                .made_way = 9,
                .turned_away = 10,
                .overtook = 8,
                .connections = 7,
                .certificate_expires = 11};
  for (const char* line :
       {"troupe_http_accepted_total 1", "troupe_http_connections 7", "troupe_http_overtook_total 8",
        R"(troupe_http_ended_total{why="malformed"} 2)",
        R"(troupe_http_ended_total{why="refused"} 3)",
        R"(troupe_http_ended_total{why="no_room"} 4)",
        R"(troupe_http_ended_total{why="timed_out"} 5)",
        R"(troupe_http_ended_total{why="too_slow"} 6)",
        R"(troupe_http_ended_total{why="made_way"} 9)", "troupe_http_turned_away_total 10",
        "troupe_http_certificate_expires_timestamp_seconds 11"}) {
    ExpectLine(line);
  }
  transport_.certificate_expires = 0;
  EXPECT_THAT(Page(), Not(HasSubstr("certificate")));
  EXPECT_THAT(metrics_.Page(model_, plan_, {}), Not(HasSubstr("troupe_http")));
}

}  // namespace
}  // namespace troupe
