// `troupe trace`: what a routing trace holds, and traces made from traces and from published
// recordings. Playing one through caches is `troupe replay`'s.
#include <fmt/format.h>

#include <cstdio>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "io/atomic_file.h"
#include "trace/recording.h"
#include "trace/trace_edit.h"
#include "trace/trace_summary.h"
#include "troupe/commands.h"
#include "troupe/json_record.h"
#include "troupe/number_list.h"
#include "troupe/options.h"
#include "troupe/remark.h"
#include "troupe/trace_stats.h"

namespace troupe {
namespace {

void WarnOfDamage(const TraceReader& reader) {
  if (!reader.damage().any()) return;
  Remark("warning: {}: {}\n", reader.name(), ToString(reader.damage()));
}

class TraceCommand final : public Command {
 public:
  void AddOptions(CLI::App& app) override {
    app.require_subcommand(1);
    app.set_help_all_flag("--help-all", "The options of all of them");
    AddInfo(*app.add_subcommand("info", "Show what traces hold, and whether they are whole"));
    AddConvert(*app.add_subcommand(
        "convert", "Make a trace of a published recording (X.meta.json), or of a trace again"));
    AddCut(*app.add_subcommand("cut", "Keep a part of a trace"));
    AddMerge(*app.add_subcommand("merge", "Put traces of one model one after the other"));
    AddStats(*app.add_subcommand(
        "stats", "How evenly experts are used, what comes back, what goes together"));
    app_ = &app;
  }

  Status CheckUsage() const override {
    if (app_->got_subcommand("cut") && first_last_.size() > 2) {
      return InvalidArgument("--sequences takes a first and a last one");
    }
    if (first_last_.size() == 2 && first_last_.front() > first_last_.back()) {
      return InvalidArgument("--sequences: {} is after {}, expected a first and a last one",
                             first_last_.front(), first_last_.back());
    }
    if (app_->got_subcommand("stats") && !out_.empty() && !out_.ends_with(".html")) {
      return InvalidArgument("--plot: '{}', expected a name that ends in .html", out_);
    }
    return OkStatus();
  }

  Status Run() override {
    if (app_->got_subcommand("info")) return Info();
    if (app_->got_subcommand("convert")) return Convert();
    if (app_->got_subcommand("cut")) return Cut();
    if (app_->got_subcommand("stats")) return Stats();
    return Merge();
  }

 private:
  void AddInfo(CLI::App& sub) {
    sub.add_option("TRACE", in_, "Traces")->required()->type_name("TRACE...");
    AddJsonOption(sub, json_);
  }
  void AddOut(CLI::App& sub) {
    sub.add_option("-o,--out", out_, "The trace to write")->required()->type_name("FILE");
  }
  void AddScores(CLI::App& sub) {
    sub.add_option("--scores", scores_, "Keep scores as f32 or f16, of the chosen alone, or none")
        ->check(CLI::IsMember({"f32", "f16", "chosen", "none"}))
        ->type_name("WHAT");
  }
  void AddConvert(CLI::App& sub) {
    sub.add_option("IN", one_, "X.meta.json, or a trace")->required()->type_name("FILE");
    AddOut(sub);
    AddScores(sub);
    sub.add_option("--model", model_, "The model's name, in place of the recording's")
        ->type_name("NAME");
    sub.add_option("--domain", domain_, "Domain of sequences that have none")->type_name("NAME");
    AddBytesOption(sub, "--expert-bytes", expert_bytes_, "What an expert weighs, for replays");
    AddBytesOption(sub, "--dense-bytes", dense_bytes_,
                   "What each token uses whatever it chooses, for replays");
    sub.add_option("--licence", licence_, "Under which the recording may be passed on")
        ->type_name("TEXT");
  }
  void AddCut(CLI::App& sub) {
    sub.add_option("TRACE", one_, "The trace")->required()->type_name("TRACE");
    AddOut(sub);
    sub.add_option("--layers", layers_, "Layers to keep, as 1-3,7 (all)")->type_name("LIST");
    sub.add_option("--every", every_, "Of those every so many (1)")
        ->check(Between(1u, kMaxTraceLayers))
        ->type_name("N");
    sub.add_option("--sequences", first_last_, "First and last sequence to keep, as 0,9 (all)")
        ->delimiter(',')
        ->type_name("A,B");
    sub.add_option("--tokens", cut_.tokens, "Tokens to keep of each sequence (all)")
        ->check(Between(1u, 1u << 30))
        ->type_name("N");
    sub.add_option("--phase", phase_, "prefill or decode (both)")
        ->check(CLI::IsMember({"prefill", "decode"}))
        ->type_name("PHASE");
    sub.add_option("--domain", cut_.domain, "This domain, and those below it (all)")
        ->type_name("NAME");
    AddScores(sub);
  }
  void AddMerge(CLI::App& sub) {
    sub.add_option("TRACE", in_, "Traces of one model")->required()->type_name("TRACE...");
    AddOut(sub);
  }

  void AddStats(CLI::App& sub) {
    sub.add_option("TRACE", one_, "The trace")->required()->type_name("TRACE");
    sub.add_option("--plot", out_, "Draw them on a page (.html)")->type_name("FILE");
    sub.add_flag("--each-domain", each_domain_, "Tell mmlu/law from mmlu/art");
    AddJsonOption(sub, json_);
  }

  Status Stats() const {
    TROUPE_ASSIGN_OR_RETURN(TraceReader reader, TraceReader::Open(one_));
    constexpr Bytes kMost = 4_GiB;  // no model's need as much; a file may say that it does
    if (const Bytes tables = TraceStatistics::BytesFor(reader.header()); tables > kMost) {
      return InvalidArgument("{}: statistics of its shape take {}, at most {} allowed", one_,
                             ToString(tables), ToString(kMost));
    }
    TraceStatistics statistics(reader.header());
    TROUPE_RETURN_IF_ERROR(statistics.Read(reader, !each_domain_));
    WarnOfDamage(reader);
    if (statistics.tokens() == 0) return DataLoss("{}: no tokens in it, expected some", one_);
    if (json_ != "-") PrintStatistics(one_, statistics);
    if (!out_.empty()) {
      TROUPE_ASSIGN_OR_RETURN(AtomicFileWriter file, AtomicFileWriter::Create(out_));
      const std::string page = StatisticsPage(one_, statistics);
      TROUPE_RETURN_IF_ERROR(file.Append(std::as_bytes(std::span(page))));
      TROUPE_RETURN_IF_ERROR(file.Commit());
    }
    return json_.empty() ? OkStatus() : WriteJson(StatisticsRecord(one_, statistics), json_);
  }

  Status Info() const {
    Json records = Json::array();
    for (const std::string& path : in_) {
      TROUPE_ASSIGN_OR_RETURN(TraceReader reader, TraceReader::Open(path));
      TROUPE_ASSIGN_OR_RETURN(const TraceSummary summary, Summarize(reader));
      if (json_ != "-") Print(reader, summary);
      records.push_back(Record(reader, summary));
    }
    return json_.empty() ? OkStatus() : WriteJson(records, json_);
  }

  static void Print(const TraceReader& reader, const TraceSummary& s) {
    const TraceHeader& h = reader.header();
    fmt::print("{}: {}\n", reader.name(), h.model);
    fmt::print("  {} layers with {} experts ({} a token) of {}; scores: {}{}\n",
               h.moe_layers.size(), h.experts, h.top_k, h.layers, Name(h.scores),
               h.all_scores ? ", of all experts" : "");
    fmt::print(
        "  {} tokens ({} of prompts, {} generated) in {} sequences{} and {} passes of at most "
        "{} tokens\n",
        s.tokens, s.prefill_tokens, s.decode_tokens, s.sequences,
        s.tokens == 0 ? "" : fmt::format(" ({} to {})", s.first_sequence, s.last_sequence),
        s.passes, s.longest_pass);
    fmt::print("  {} in {} chunks\n", ToString(Bytes(reader.file_bytes())), s.chunks);
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
    record["header"] = Json::parse(ToJson(reader.header()));
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
    record["tokens_by_domain"] = s.tokens_by_domain;
    record["damage"] = {{"places", s.damage.places},
                        {"bytes", s.damage.bytes},
                        {"tokens", s.damage.tokens},
                        {"first", s.damage.first}};
    return record;
  }

  TraceCut WithScores(TraceCut cut) const {
    if (scores_ == "none") cut.drop_scores = true;
    if (scores_ == "chosen") cut.drop_all_scores = true;
    if (scores_ == "f32") cut.score_type = ScoreType::kF32;
    if (scores_ == "f16") cut.score_type = ScoreType::kF16;
    return cut;
  }

  Status Finish(TraceWriter& writer) const {
    if (writer.tokens() == 0) return InvalidArgument("{}: no token would be in it", out_);
    TROUPE_RETURN_IF_ERROR(writer.Finish());
    Remark("{}: {} tokens, {}\n", out_, writer.tokens(),
           ToString(Bytes(std::filesystem::file_size(out_))));
    return OkStatus();
  }

  Result<TraceWriter> Writer(const TraceHeader& header) const {
    TROUPE_ASSIGN_OR_RETURN(std::unique_ptr<TraceSink> sink, WholeFile(out_));
    return TraceWriter::Create(std::move(sink), header);
  }

  // From a trace to a trace.
  Status CutTo(const TraceCut& cut, const std::function<void(TraceHeader&)>& change) const {
    TROUPE_ASSIGN_OR_RETURN(TraceReader reader, TraceReader::Open(one_));
    Result<TraceHeader> header = CutHeader(reader.header(), cut);
    if (!header.ok()) return Status(header.status()).WithContext(one_);
    change(*header);
    TROUPE_ASSIGN_OR_RETURN(TraceWriter writer, Writer(*header));
    TROUPE_RETURN_IF_ERROR(CutTrace(reader, cut, writer));
    WarnOfDamage(reader);
    return Finish(writer);
  }

  void Describe(TraceHeader& header) const {
    if (!model_.empty()) header.model = model_;
    if (!licence_.empty()) header.licence = licence_;
    if (dense_bytes_.count() > 0) header.dense_bytes = dense_bytes_.count();
    if (expert_bytes_.count() > 0) {
      header.expert_bytes.assign(header.moe_layers.size(), expert_bytes_.count());
    }
  }

  Status Convert() const {
    const TraceCut cut = WithScores({});
    if (!one_.ends_with(".json")) {
      return CutTo(cut, [this](TraceHeader& header) { Describe(header); });
    }
    TROUPE_ASSIGN_OR_RETURN(Recording recording, ReadRecording(one_));
    for (Recording::Sequence& sequence : recording.sequences) {
      if (sequence.domain.empty()) sequence.domain = domain_;
    }
    TROUPE_ASSIGN_OR_RETURN(recording.header, CutHeader(recording.header, cut));
    if (cut.drop_scores) recording.scores.clear();
    Describe(recording.header);
    TROUPE_ASSIGN_OR_RETURN(TraceWriter writer, Writer(recording.header));
    TROUPE_RETURN_IF_ERROR(Write(recording, writer));
    return Finish(writer);
  }

  Status Cut() {
    TraceCut cut = WithScores(cut_);
    if (!first_last_.empty()) {
      cut.first_sequence = first_last_.front();
      cut.last_sequence = first_last_.back();
    }
    if (phase_ == "prefill") cut.phase = TracePhase::kPrefill;
    if (phase_ == "decode") cut.phase = TracePhase::kDecode;
    TROUPE_ASSIGN_OR_RETURN(cut.layers, ParseNumberList("--layers", layers_));
    if (every_ > 1) {
      if (cut.layers.empty()) {
        TROUPE_ASSIGN_OR_RETURN(const TraceReader reader, TraceReader::Open(one_));
        cut.layers = reader.header().moe_layers;
      }
      std::vector<std::uint32_t> some;
      for (std::size_t i = 0; i < cut.layers.size(); i += every_) some.push_back(cut.layers[i]);
      cut.layers = some;
    }
    return CutTo(cut, [](TraceHeader&) {});
  }

  Status Merge() const {
    TROUPE_ASSIGN_OR_RETURN(const TraceReader first, TraceReader::Open(in_.front()));
    TraceHeader header = first.header();
    header.cache.reset();  // one cache did not see them all
    TROUPE_ASSIGN_OR_RETURN(TraceWriter writer, Writer(header));
    std::uint32_t next = 0;
    for (const std::string& path : in_) {
      TROUPE_ASSIGN_OR_RETURN(TraceReader reader, TraceReader::Open(path));
      const TraceHeader& other = reader.header();
      if (Status same = SameModel(header, other); !same.ok()) {
        return std::move(same).WithContext(path);
      }
      if (other.scores != header.scores || other.all_scores != header.all_scores) {
        return InvalidArgument(
            "{}: scores: {}{}, expected {}{} as in {}; --scores of `troupe trace "
            "convert` makes them alike",
            path, Name(other.scores), other.all_scores ? " of all experts" : "",
            Name(header.scores), header.all_scores ? " of all experts" : "", in_.front());
      }
      TROUPE_ASSIGN_OR_RETURN(next, AppendTrace(reader, next, writer));
      WarnOfDamage(reader);
    }
    return Finish(writer);
  }

  CLI::App* app_ = nullptr;
  std::vector<std::string> in_;
  std::string one_, out_, json_, scores_, model_, domain_, licence_, layers_, phase_;
  Bytes expert_bytes_, dense_bytes_;
  std::vector<std::uint32_t> first_last_;
  std::uint32_t every_ = 1;
  bool each_domain_ = false;
  TraceCut cut_;
};

}  // namespace

std::unique_ptr<Command> MakeTraceCommand() { return std::make_unique<TraceCommand>(); }

}  // namespace troupe
