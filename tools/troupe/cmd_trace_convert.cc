// `troupe trace convert`: a trace of a published recording, or of a trace with another header.
#include <string>

#include "trace/recording.h"
#include "troupe/options.h"
#include "troupe/trace_making.h"
#include "troupe/trace_verbs.h"

namespace troupe {
namespace {

class TraceConvert final : public Command {
 public:
  void AddOptions(Options& options) override {
    options.Add("IN", in_, "A recording (X.meta.json) or a trace").Required().Type("FILE");
    out_.AddTo(options);
    scores_.AddTo(options);
    options.Add("--model", model_, "Name of the model, in place of the recording's").Type("NAME");
    options.Add("--domain", domain_, "Domain of sequences that have none").Type("NAME");
    options.Add("--expert-bytes", expert_bytes_, "Size of an expert, for replays").Type("SIZE");
    options
        .Add("--dense-bytes", dense_bytes_,
             "Size of the weights that every token uses, for replays")
        .Type("SIZE");
    options.Add("--licence", licence_, "Licence of the recording").Type("TEXT");
  }

  Status Run() override {
    const TraceCut cut = scores_.In({});
    if (!in_.ends_with(".json")) {
      return out_.WriteCut(in_, cut, [this](TraceHeader& header) { Describe(header); });
    }
    TROUPE_ASSIGN_OR_RETURN(Recording recording, ReadRecording(in_));
    for (Recording::Sequence& sequence : recording.sequences) {
      if (sequence.domain.empty()) sequence.domain = domain_;
    }
    TROUPE_ASSIGN_OR_RETURN(recording.header, CutHeader(recording.header, cut));
    if (cut.drop_scores) recording.scores.clear();
    Describe(recording.header);
    TROUPE_ASSIGN_OR_RETURN(TraceWriter writer, out_.Create(recording.header));
    TROUPE_RETURN_IF_ERROR(Write(recording, writer));
    return out_.Finish(writer);
  }

 private:
  void Describe(TraceHeader& header) const {
    if (!model_.empty()) header.model = model_;
    if (!licence_.empty()) header.licence = licence_;
    if (dense_bytes_.count() > 0) header.dense_bytes = dense_bytes_.count();
    if (expert_bytes_.count() > 0) {
      header.expert_bytes.assign(header.moe_layers.size(), expert_bytes_.count());
    }
  }

  std::string in_, model_, domain_, licence_;
  Bytes expert_bytes_, dense_bytes_;
  TraceOutput out_;
  TraceScoresFlag scores_;
};

}  // namespace

std::unique_ptr<Command> MakeTraceConvert() { return std::make_unique<TraceConvert>(); }

}  // namespace troupe
