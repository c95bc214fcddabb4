// `troupe trace stats`: how evenly experts are used, what comes back, what goes together.
#include <string>

#include "base/bytes.h"
#include "io/text_file.h"
#include "troupe/options.h"
#include "troupe/plot_file.h"
#include "troupe/trace_making.h"
#include "troupe/trace_stats.h"
#include "troupe/trace_verbs.h"

namespace troupe {
namespace {

class TraceStats final : public Command {
 public:
  void AddOptions(Options& options) override {
    options.Add("TRACE", trace_, "Trace to read").Required().Type("TRACE");
    AddOutputOption(options, "--plot", page_, "Plot the statistics on a page (.html)");
    options.AddFlag("--each-domain", each_domain_,
                    "Keep subdomains apart: mmlu/law and mmlu/art are two domains");
    AddJsonOption(options, json_);
  }

  Status CheckUsage() const override {
    if (page_.empty() || page_.ends_with(".html")) return OkStatus();
    return InvalidArgument("--plot: '{}', expected a name that ends in .html", page_);
  }

  Status Run() override {
    TROUPE_ASSIGN_OR_RETURN(TraceReader reader, TraceReader::Open(trace_));
    constexpr Bytes kMost = 4_GiB;  // no model's need as much; a file may say that it does
    if (const Bytes tables = TraceStatistics::BytesFor(reader.header()); tables > kMost) {
      return InvalidArgument("{}: statistics of its shape take {}, at most {} allowed", trace_,
                             ToString(tables), ToString(kMost));
    }
    TraceStatistics statistics(reader.header());
    TROUPE_RETURN_IF_ERROR(statistics.Read(reader, !each_domain_));
    WarnOfDamage(reader);
    if (statistics.tokens() == 0) return DataLoss("{}: no tokens in it, expected some", trace_);
    if (json_ != "-") PrintStatistics(trace_, statistics);
    if (!page_.empty()) {
      TROUPE_RETURN_IF_ERROR(WriteWholeText(page_, StatisticsPage(trace_, statistics)));
    }
    TellPlot(page_);
    return json_.empty() ? OkStatus() : WriteJson(StatisticsRecord(trace_, statistics), json_);
  }

 private:
  std::string trace_, page_, json_;
  bool each_domain_ = false;
};

}  // namespace

std::unique_ptr<Command> MakeTraceStats() { return std::make_unique<TraceStats>(); }

}  // namespace troupe
