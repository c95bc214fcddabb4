#include "troupe/split_metrics.h"

#include <algorithm>
#include <string>
#include <utility>

#include "troupe/figures.h"

namespace troupe {
namespace {

void TellCosts(const char* where, const std::optional<PlaceCosts>& costs, Figures& figures) {
  if (!costs) return;
  figures.Gauge("troupe_split_token_seconds", "What a token of an answer takes there, as measured",
                costs->token_seconds, {{"place", where}});
  figures.Gauge("troupe_split_read_seconds", "What a token of a prompt takes there, as measured",
                costs->read_seconds, {{"place", where}});
  figures.Gauge("troupe_split_wait_seconds", "How long an answer waits there before it begins",
                costs->wait_seconds, {{"place", where}});
}

void TellCuts(const CutState& cuts, Figures& figures) {
  constexpr auto kPrompts = "Prompts that were cut by layers, and what became of them";
  const CutCounts& counts = cuts.counts;
  const std::pair<const char*, std::uint64_t> prompts[] = {
      {"begun", counts.begun}, {"answered", counts.answered}, {"failed", counts.failed}};
  for (const auto& [what, number] : prompts) {
    figures.Counter("troupe_split_cut_prompts_total", kPrompts, number, {{"state", what}});
  }
  constexpr auto kRows = "Rows of the residual stream that crossed, bit for bit or by a lossy code";
  figures.Counter("troupe_split_cut_rows_total", kRows, counts.rows - counts.lossy_rows,
                  {{"code", "exact"}});
  figures.Counter("troupe_split_cut_rows_total", kRows, counts.lossy_rows, {{"code", "lossy"}});
  for (const auto& [layer, rows] : counts.rows_before) {
    figures.Counter("troupe_split_cut_rows_before_total",
                    "The same rows, by the layer before which they left this machine", rows,
                    {{"layer", std::to_string(layer)}});
  }
  figures.Counter("troupe_split_cut_bytes_total", "Bytes of messages with such rows", counts.bytes);
  figures.Counter("troupe_split_cut_bytes_spared_total",
                  "Bytes by which an entropy coder has made these messages shorter",
                  counts.bytes_spared);
  figures.Counter("troupe_split_cut_encode_seconds_total",
                  "Time in which the thread that talks with the cloud wrote such messages",
                  counts.encode_seconds);
  figures.Counter("troupe_split_cut_keys_bytes_total",
                  "Bytes of messages with keys and values of cut prompts", counts.keys_bytes);
  figures.Counter("troupe_split_cut_answers_total",
                  "Cut prompts of longer answers, with which the cloud went on", counts.went_on);
  constexpr auto kLanes =
      "Time in which prompts were cut, with such work in that lane and with none";
  const std::pair<const char*, double> lanes[] = {{"end", counts.end.seconds()},
                                                  {"link", counts.link.seconds()},
                                                  {"cloud", counts.cloud.seconds()}};
  for (const auto& [lane, busy] : lanes) {
    figures.Counter("troupe_split_cut_lane_seconds_total", kLanes, busy,
                    {{"lane", lane}, {"state", "busy"}});
    figures.Counter("troupe_split_cut_lane_seconds_total", kLanes,
                    std::max(0.0, cuts.seconds - busy), {{"lane", lane}, {"state", "idle"}});
  }
  figures.Gauge("troupe_split_link_bytes_per_second",
                "What the link to the cloud carries, as cut prompts have measured it",
                cuts.bytes_a_second);
}

void TellMemory(const MemoryState& memory, Figures& figures) {
  const SlotUse& use = memory.use;
  figures.Gauge("troupe_device_slots", "Experts that the cache may hold now", use.slots);
  figures.Gauge("troupe_device_slots_wanted",
                "Experts that it may hold by the memory that is free; the cache follows",
                memory.wanted);
  figures.Counter("troupe_device_slots_given_back_total",
                  "By how many experts the cache became smaller as memory was short",
                  use.given_back);
  figures.Counter("troupe_device_slots_taken_again_total",
                  "By how many it became larger as memory was there again", use.taken_again);
  figures.Counter("troupe_device_returned_bytes_total",
                  "Memory of the cache that the system got back", use.returned.count());
  figures.Gauge("troupe_device_spare_bytes",
                "What others would have if this process took all that it may; below zero it does "
                "not fit",
                static_cast<double>(memory.spare_bytes));
}

}  // namespace

std::vector<ExtraMetric> MetricsOf(const PartCounters& counters, const CutHost::WentOn& went_on) {
  Figures figures;
  constexpr auto kAnswers =
      "Cut prompts of longer answers, by whether the model found there what was read of them";
  figures.Counter("troupe_cloud_cut_answers_total", kAnswers, went_on.kept, {{"keys", "kept"}});
  figures.Counter("troupe_cloud_cut_answers_total", kAnswers, went_on.no_room,
                  {{"keys", "no_room"}});
  figures.Counter("troupe_cloud_cut_answers_total", kAnswers, went_on.given_up,
                  {{"keys", "given_up"}});
  figures.Counter("troupe_cloud_cut_keys_bytes_total",
                  "Keys and values of cut prompts that ends have computed", counters.stored_bytes);
  figures.Counter("troupe_cloud_cut_prompts_total", "Prompts that ends have cut by layers",
                  counters.prompts);
  figures.Counter("troupe_cloud_cut_rows_total", "Rows of such prompts that went through layers",
                  counters.rows);
  figures.Counter("troupe_cloud_cut_passes_total", "Passes of such rows", counters.passes);
  figures.Counter("troupe_cloud_cut_pass_seconds_total", "What these passes took",
                  counters.pass_seconds);
  figures.Gauge("troupe_cloud_cut_prompts_now", "Such prompts that are under way",
                counters.prompts_now);
  figures.Gauge("troupe_cloud_cut_rows_waiting", "Rows of such prompts that wait for a pass",
                counters.waiting_rows);
  return std::move(figures).Take();
}

std::vector<ExtraMetric> MetricsOf(const EndState& state) {
  Figures figures;
  figures.Gauge("troupe_split_cloud", "1 if the cloud is there and has the same model",
                state.cloud == CloudWatch::State::kThere ? 1 : 0);
  figures.Gauge("troupe_split_answers_now", "Answers under way in both places", state.under_way);
  for (const Side side : {Side::kEnd, Side::kCloud}) {
    const auto i = static_cast<std::size_t>(side);
    const Figures::Labels label = {{"place", std::string(Name(side))}};
    figures.Counter("troupe_split_answers_total", "Answers, by where they began", state.begun[i],
                    label);
    figures.Counter("troupe_split_tokens_total", "Tokens of answers, by where they were chosen",
                    state.flow.tokens[i], label);
    constexpr auto kLanes =
        "Time in which answers were under way, with work for them there (tokens, guesses, layers "
        "of "
        "cut prompts) and with none";
    figures.Counter("troupe_split_lane_seconds_total", kLanes, state.busy_seconds[i],
                    {{"place", std::string(Name(side))}, {"state", "busy"}});
    figures.Counter("troupe_split_lane_seconds_total", kLanes, state.idle_seconds[i],
                    {{"place", std::string(Name(side))}, {"state", "idle"}});
    figures.Counter("troupe_split_unused_tokens_total",
                    "Tokens that came when the other place had given them", state.flow.unused[i],
                    label);
    figures.Counter("troupe_split_taken_over_total",
                    "Answers that this place has taken over from the other one",
                    state.flow.taken_over[i], label);
    figures.Counter("troupe_split_moved_total",
                    "Answers that came to this place as they waited in the other one",
                    state.flow.moved[i], label);
  }
  const std::pair<const char*, const PredictedSums&> predicted[] = {
      {"end", state.predicted[0]},
      {"cloud", state.predicted[1]},
      {"cut", state.predicted_cuts},
      {"drafts", state.predicted_drafts}};
  for (const auto& [way, sums] : predicted) {
    const Figures::Labels label = {{"way", way}};
    figures.Counter("troupe_split_predicted_answers_total",
                    "Answers that ended where they began, of which was said how long they take",
                    sums.answers, label);
    figures.Counter("troupe_split_predicted_seconds_total", "What was said of these",
                    sums.expected_seconds, label);
    figures.Counter("troupe_split_predicted_took_seconds_total", "What these have taken",
                    sums.seconds, label);
  }
  figures.Counter("troupe_split_cloud_failures_total",
                  "Times that the cloud, its link or the layers here of a cut prompt failed",
                  state.flow.failures);
  figures.Counter("troupe_split_cloud_refusals_total",
                  "Times that a cloud that is well did not take an answer or go on with it: it was "
                  "full, or its context is, or it does not serve this end",
                  state.flow.refusals);
  figures.Counter("troupe_split_cloud_silences_total",
                  "Times that the end began as the cloud was silent", state.flow.silences);
  figures.Counter("troupe_split_cloud_stalls_total",
                  "Times that the end began as the cloud lived and gave no token",
                  state.flow.stalls);
  figures.Counter("troupe_split_wrong_total",
                  "Answers that failed, as the cloud had said a token that this model does not say "
                  "and it was shown",
                  state.flow.wrong);
  figures.Counter("troupe_split_bytes_total", "Bytes of bodies, to and from the cloud",
                  state.bytes_sent, {{"direction", "sent"}});
  figures.Counter("troupe_split_bytes_total", "Bytes of bodies, to and from the cloud",
                  state.bytes_received, {{"direction", "received"}});
  figures.Gauge("troupe_split_round_trip_seconds",
                "What it took last to ask whether the cloud is there", state.round_trip_seconds);
  constexpr auto kDrafts =
      "Tokens that this machine guessed for the cloud; of these late, as the cloud had said them; "
      "those that the cloud has checked; and of those right, as its last words on each answer say";
  const std::pair<const char*, std::uint64_t> drafts[] = {{"guessed", state.drafts.guessed},
                                                          {"late", state.drafts.late},
                                                          {"checked", state.drafts.checked},
                                                          {"right", state.drafts.right}};
  for (const auto& [what, tokens] : drafts) {
    figures.Counter("troupe_split_draft_tokens_total", kDrafts, tokens, {{"state", what}});
  }
  figures.Counter("troupe_split_draft_offers_total", "Times that the cloud was told of guesses",
                  state.drafts.offers);
  figures.Counter("troupe_split_draft_learned_total",
                  "Answers with drafts by which the next ones are predicted", state.drafts.learned);
  figures.Counter("troupe_split_draft_expected_seconds_total",
                  "What was said of their tokens with drafts", state.drafts.expected_seconds);
  figures.Counter("troupe_split_draft_took_seconds_total", "What these tokens have taken",
                  state.drafts.seconds);
  figures.Gauge("troupe_split_draft_taken",
                "Of the right guesses that should be in time, what the cloud takes",
                state.draft_taken);
  figures.Gauge("troupe_split_draft_factor",
                "How many times longer tokens with drafts take than all else says",
                state.draft_factor);
  figures.Gauge("troupe_split_draft_ahead",
                "Tokens that drafts are to be ahead of the cloud; 0: they would not gain",
                state.pace.ahead);
  figures.Gauge("troupe_split_draft_odds",
                "How likely a guess is right whose forerunners were, as measured",
                state.draft_odds);
  if (state.cuts) TellCuts(*state.cuts, figures);
  TellCosts("end", state.end, figures);
  TellCosts("cloud", state.cloud_costs, figures);
  TellCosts("drafts", state.with_drafts, figures);
  if (state.memory) TellMemory(*state.memory, figures);
  if (state.device) {
    figures.Gauge("troupe_device_experts", "Experts that this device may run now",
                  state.device->capability.experts);
    figures.Gauge("troupe_device_processors", "Part of its processors that it has for this",
                  state.device->share.processors);
    figures.Gauge("troupe_device_power", "Part of its power that it has for this; 1 on the mains",
                  state.device->share.power);
  }
  return std::move(figures).Take();
}

}  // namespace troupe
