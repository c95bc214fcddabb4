// `troupe trace cut`: a part of a trace as a trace.
#include <string>
#include <vector>

#include "troupe/number_list.h"
#include "troupe/options.h"
#include "troupe/trace_making.h"
#include "troupe/trace_verbs.h"

namespace troupe {
namespace {

class TraceCutVerb final : public Command {
 public:
  void AddOptions(Options& options) override {
    options.Add("TRACE", in_, "Trace to read").Required().Type("TRACE");
    out_.AddTo(options);
    options.Add("--layers", layers_, "Layers to keep, as 1-3,7 (all)").Type("LIST");
    options.Add("--every", every_, "Keep every Nth of those layers (1)")
        .Between(1u, kMaxTraceLayers)
        .Type("N");
    options.Add("--sequences", first_last_, "First and last sequence to keep, as 0,9 (all)")
        .SeparatedBy(',')
        .Type("A,B");
    options.Add("--tokens", kept_.tokens, "Number of tokens to keep of each sequence (all)")
        .Between(1u, 1u << 30)
        .Type("N");
    options.Add("--phase", phase_, "Phase to keep: prefill or decode (both)")
        .OneOf({"prefill", "decode"})
        .Type("PHASE");
    options.Add("--domain", kept_.domain, "Keep this domain and those below it (all)").Type("NAME");
    scores_.AddTo(options);
  }

  Status CheckUsage() const override {
    if (first_last_.size() > 2) {
      return InvalidArgument("--sequences takes a first and a last one");
    }
    if (first_last_.size() == 2 && first_last_.front() > first_last_.back()) {
      return InvalidArgument("--sequences: {} is after {}, expected a first and a last one",
                             first_last_.front(), first_last_.back());
    }
    return OkStatus();
  }

  Status Run() override {
    TraceCut cut = scores_.In(kept_);
    if (!first_last_.empty()) {
      cut.first_sequence = first_last_.front();
      cut.last_sequence = first_last_.back();
    }
    if (phase_ == "prefill") cut.phase = TracePhase::kPrefill;
    if (phase_ == "decode") cut.phase = TracePhase::kDecode;
    TROUPE_ASSIGN_OR_RETURN(cut.layers, Layers());
    return out_.WriteCut(in_, cut);
  }

 private:
  // Empty: all.
  Result<std::vector<std::uint32_t>> Layers() const {
    TROUPE_ASSIGN_OR_RETURN(std::vector<std::uint32_t> layers,
                            ParseNumberList("--layers", layers_));
    if (every_ == 1) return layers;
    if (layers.empty()) {
      TROUPE_ASSIGN_OR_RETURN(const TraceReader reader, TraceReader::Open(in_));
      layers = reader.header().moe_layers;
    }
    std::vector<std::uint32_t> some;
    for (std::size_t i = 0; i < layers.size(); i += every_) some.push_back(layers[i]);
    return some;
  }

  std::string in_, layers_, phase_;
  std::vector<std::uint32_t> first_last_;
  std::uint32_t every_ = 1;
  TraceCut kept_;  // as far as options fill it in directly
  TraceOutput out_;
  TraceScoresFlag scores_;
};

}  // namespace

std::unique_ptr<Command> MakeTraceCut() { return std::make_unique<TraceCutVerb>(); }

}  // namespace troupe
