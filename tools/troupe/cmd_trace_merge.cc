// `troupe trace merge`: traces of one model, one after the other.
#include <string>
#include <vector>

#include "troupe/trace_making.h"
#include "troupe/trace_verbs.h"

namespace troupe {
namespace {

class TraceMerge final : public Command {
 public:
  void AddOptions(Options& options) override {
    options.Add("TRACE", traces_, "Traces of one model").Required().Type("TRACE...");
    out_.AddTo(options);
  }

  Status Run() override {
    TROUPE_ASSIGN_OR_RETURN(const TraceReader first, TraceReader::Open(traces_.front()));
    TraceHeader header = first.header();
    header.cache.reset();  // one cache did not see them all
    TROUPE_ASSIGN_OR_RETURN(TraceWriter writer, out_.Create(header));
    std::uint32_t next = 0;
    for (const std::string& path : traces_) {
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
            Name(header.scores), header.all_scores ? " of all experts" : "", traces_.front());
      }
      TROUPE_ASSIGN_OR_RETURN(next, AppendTrace(reader, next, writer));
      WarnOfDamage(reader);
    }
    return out_.Finish(writer);
  }

 private:
  std::vector<std::string> traces_;
  TraceOutput out_;
};

}  // namespace

std::unique_ptr<Command> MakeTraceMerge() { return std::make_unique<TraceMerge>(); }

}  // namespace troupe
