// `troupe trace info`: what traces hold, and whether they are whole.
#include <fmt/core.h>

#include <string>
#include <vector>

#include "trace/trace_summary.h"
#include "troupe/counted.h"
#include "troupe/json_record.h"
#include "troupe/options.h"
#include "troupe/trace_verbs.h"

namespace troupe {
namespace {

class TraceInfo final : public Command {
 public:
  void AddOptions(Options& options) override {
    options.Add("TRACE", traces_, "Traces to read").Required().Type("TRACE...");
    AddJsonOption(options, json_);
  }

  Status Run() override {
    Json records = Json::Array();
    Status whole;  // of the first that is not
    for (const std::string& path : traces_) {
      TROUPE_ASSIGN_OR_RETURN(TraceReader reader, TraceReader::Open(path));
      TROUPE_ASSIGN_OR_RETURN(const TraceSummary summary, Summarize(reader));
      if (json_ != "-") Print(reader, summary);
      records.push_back(Record(reader, summary));
      if (whole.ok() && summary.damage.any()) {
        whole = DataLoss("{}: damaged: {}", reader.name(), ToString(summary.damage));
      }
    }
    if (!json_.empty()) TROUPE_RETURN_IF_ERROR(WriteJson(records, json_));
    return whole;
  }

 private:
  static void Print(const TraceReader& reader, const TraceSummary& s) {
    const TraceHeader& h = reader.header();
    fmt::print("{}: the routing of {} through {}{}\n", reader.name(), Counted(s.tokens, "token"),
               h.model, s.damage.any() ? ", damaged" : "");
    fmt::print("  {} layers with {} experts ({} a token) of {}; scores: {}{}\n",
               h.moe_layers.size(), h.experts, h.top_k, h.layers, Name(h.scores),
               h.all_scores ? ", of all experts" : "");
    fmt::print("  {} ({} of prompts, {} generated) in {}{} and {} of at most {}\n",
               Counted(s.tokens, "token"), s.prefill_tokens, s.decode_tokens,
               Counted(s.sequences, "sequence"),
               s.tokens == 0 ? "" : fmt::format(" ({} to {})", s.first_sequence, s.last_sequence),
               Counted(s.passes, "pass"), Counted(s.longest_pass, "token"));
    fmt::print("  {} in {}\n", ToString(Bytes(reader.file_bytes())), Counted(s.chunks, "chunk"));
    if (!s.damage.any())
      fmt::print("  whole{}\n", h.ends ? "" : ", as far as an older trace tells");
    constexpr std::size_t kMostShown = 12;
    std::size_t shown = 0;
    for (const auto& [domain, tokens] : s.tokens_by_domain) {
      if (++shown > kMostShown) break;
      fmt::print("  {:<40} {:>9} tokens\n", domain.empty() ? "(no domain)" : domain, tokens);
    }
    if (s.tokens_by_domain.size() > kMostShown) {
      fmt::print("  and {} domains more\n", s.tokens_by_domain.size() - kMostShown);
    }
    if (h.cache) {
      fmt::print("  recorded with {} slots ({} in no quota), {}, shared by {}, guesses: {}\n",
                 h.cache->slots, h.cache->spare, h.cache->policy,
                 h.cache->per_layer ? "layer" : "all layers", h.cache->predictor);
    }
    if (!h.origin.empty()) fmt::print("  origin: {}\n", h.origin);
    if (!h.licence.empty()) fmt::print("  licence: {}\n", h.licence);
    if (s.damage.any()) fmt::print("  {}\n", ToString(s.damage));
  }

  static Json Record(const TraceReader& reader, const TraceSummary& s) {
    Json record;
    record["trace"] = reader.name();
    record["bytes"] = reader.file_bytes();
    record["header"] = *Json::Parse(ToJson(reader.header()));
    record["tokens"] = s.tokens;
    record["prefill_tokens"] = s.prefill_tokens;
    record["decode_tokens"] = s.decode_tokens;
    record["sequences"] = s.sequences;
    if (s.tokens > 0) {
      record["first_sequence"] = s.first_sequence;
      record["last_sequence"] = s.last_sequence;
    }
    record["passes"] = s.passes;
    record["longest_pass"] = s.longest_pass;
    record["chunks"] = s.chunks;
    Json& by_domain = record["tokens_by_domain"] = Json::Object();
    for (const auto& [domain, tokens] : s.tokens_by_domain) by_domain[domain] = tokens;
    record["whole"] = !s.damage.any();
    record["damage"] = {{"places", s.damage.places},
                        {"bytes", s.damage.bytes},
                        {"tokens", s.damage.tokens},
                        {"cut_short", s.damage.cut_short},
                        {"first", s.damage.first}};
    return record;
  }

  std::vector<std::string> traces_;
  std::string json_;
};

}  // namespace

std::unique_ptr<Command> MakeTraceInfo() { return std::make_unique<TraceInfo>(); }

}  // namespace troupe
