#include "sim/trace_file.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <optional>

#include "base/json_value.h"
#include "io/read_whole.h"
#include "trace/recording.h"
#include "trace/trace_reader.h"

namespace troupe {
namespace {

std::vector<std::string_view> Split(std::string_view line, char by) {
  std::vector<std::string_view> fields;
  for (std::size_t at = 0;;) {
    const std::size_t end = line.find(by, at);
    fields.push_back(line.substr(at, end - at));
    if (end == std::string_view::npos) return fields;
    at = end + 1;
  }
}

// Lines without their ends; the last may be empty.
template <typename Use>
Status ForEachLine(const std::string& path, std::string_view text, Use use) {
  std::size_t number = 0;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    std::string_view line = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    if (line.ends_with('\r')) line.remove_suffix(1);
    ++number;
    if (line.empty()) continue;
    if (Status status = use(number, line); !status.ok()) {
      return std::move(status).WithContext(fmt::format("{}, line {}", path, number));
    }
  }
  return OkStatus();
}

Result<std::uint64_t> ParseCount(std::string_view text) {
  std::uint64_t count = 0;
  if (text.empty() || text.size() > 18) return DataLoss("'{}', expected a count", text);
  for (const char c : text) {
    if (c < '0' || c > '9') return DataLoss("'{}', expected a count", text);
    count = count * 10 + static_cast<std::uint64_t>(c - '0');
  }
  return count;
}

// "2023-11-16 18:15:46.6805900", as seconds of the Unix epoch in UTC.
Result<double> ParseTimestamp(std::string_view text) {
  std::tm time{};
  double seconds = 0;
  const std::string copy(text);
  if (std::sscanf(copy.c_str(), "%d-%d-%d %d:%d:%lf", &time.tm_year, &time.tm_mon, &time.tm_mday,
                  &time.tm_hour, &time.tm_min, &seconds) != 6) {
    return DataLoss("'{}', expected a time as 2023-11-16 18:15:46.68", text);
  }
  time.tm_year -= 1900;
  time.tm_mon -= 1;
  return static_cast<double>(::timegm(&time)) + seconds;
}

RecordedRequest Request(double seconds, std::uint64_t input, std::uint64_t output) {
  constexpr std::uint64_t kMost = 1u << 20;
  return {.seconds = seconds,
          .input_tokens = static_cast<std::uint32_t>(std::clamp<std::uint64_t>(input, 1, kMost)),
          .output_tokens = static_cast<std::uint32_t>(std::clamp<std::uint64_t>(output, 1, kMost))};
}

Result<RecordedRequest> AzureRequest(std::string_view line) {
  const auto fields = Split(line, ',');
  if (fields.size() != 3) return DataLoss("{} fields, expected 3", fields.size());
  TROUPE_ASSIGN_OR_RETURN(const double seconds, ParseTimestamp(fields[0]));
  TROUPE_ASSIGN_OR_RETURN(const std::uint64_t input, ParseCount(fields[1]));
  TROUPE_ASSIGN_OR_RETURN(const std::uint64_t output, ParseCount(fields[2]));
  return Request(seconds, input, output);
}

Result<RecordedRequest> MooncakeRequest(std::string_view line) {
  return ReadJson<RecordedRequest>("a request", line, [](const JsonValue& json) {
    constexpr std::uint64_t kMost = std::uint64_t{1} << 40;
    return Request(json.At("timestamp").Number() / 1000, json.At("input_length").Count(0, kMost),
                   json.At("output_length").Count(0, kMost));
  });
}

Result<RoutingTrace> FromRecording(const std::string& path) {
  TROUPE_ASSIGN_OR_RETURN(Recording recording, ReadRecording(path));
  RoutingTrace trace{.layers = static_cast<std::uint32_t>(recording.header.moe_layers.size()),
                     .experts = recording.header.experts,
                     .top_k = recording.header.top_k,
                     .tokens = recording.tokens,
                     .ids = std::move(recording.ids)};
  std::uint32_t start = 0;
  for (const Recording::Sequence& sequence : recording.sequences) {
    trace.sequence_starts.push_back(start);
    start += sequence.tokens;
  }
  return trace;
}

// Adjacent tokens of a sequence, by their place in the trace.
struct Piece {
  std::uint32_t sequence, first, tokens;
  TracePhase phase;
};

// A run of several sequences at once records a token of each in turn. Here each has its tokens one
// after the other, as if they had run alone.
void PutSequencesTogether(std::vector<Piece>& pieces, RoutingTrace& trace) {
  std::ranges::stable_sort(pieces, {}, &Piece::sequence);
  const std::vector<std::uint16_t> as_recorded = std::move(trace.ids);
  trace.ids.clear();
  trace.ids.reserve(as_recorded.size());
  for (std::size_t layer = 0; layer < trace.layers; ++layer) {
    const auto ids = std::span(as_recorded).subspan(layer * trace.tokens * trace.top_k);
    for (const Piece& piece : pieces) {
      const auto of_piece = ids.subspan(std::size_t{piece.first} * trace.top_k,
                                        std::size_t{piece.tokens} * trace.top_k);
      trace.ids.insert(trace.ids.end(), of_piece.begin(), of_piece.end());
    }
  }
}

// A simulation draws its prompts anywhere in the trace, so all of it is held.
Result<RoutingTrace> FromTrace(const std::string& path) {
  TROUPE_ASSIGN_OR_RETURN(TraceReader reader, TraceReader::Open(path));
  const TraceHeader& header = reader.header();
  RoutingTrace trace{.layers = static_cast<std::uint32_t>(header.moe_layers.size()),
                     .experts = header.experts,
                     .top_k = header.top_k};
  std::vector<TraceBlock> blocks;
  std::vector<Piece> pieces;
  while (true) {
    TROUPE_ASSIGN_OR_RETURN(std::optional<TraceBlock> block, reader.Next());
    if (!block) break;
    for (const TraceSegment& segment : block->segments) {
      pieces.push_back({segment.sequence, trace.tokens, segment.tokens, segment.phase});
      trace.tokens += segment.tokens;
    }
    blocks.push_back(std::move(*block));
  }
  if (reader.damage().any()) return DataLoss("{}: {}", path, ToString(reader.damage()));
  if (blocks.empty()) return DataLoss("{}: no tokens in it, expected some", path);
  trace.ids = Join(header, blocks).ids;
  if (header.sequences > 1) PutSequencesTogether(pieces, trace);
  std::uint32_t start = 0;
  for (std::size_t i = 0; i < pieces.size(); start += pieces[i++].tokens) {
    if (i == 0 || pieces[i].sequence != pieces[i - 1].sequence) {
      trace.sequence_starts.push_back(start);
      trace.answer_tokens.push_back(0);
    }
    if (pieces[i].phase == TracePhase::kDecode) trace.answer_tokens.back() += pieces[i].tokens;
  }
  // Where nothing was asked, what was decoded is no answer.
  for (std::size_t i = 0; i < trace.sequence_starts.size(); ++i) {
    if (trace.answer_tokens[i] < trace.SequenceLength(i)) continue;
    trace.answer_tokens.clear();
    break;
  }
  return trace;
}

}  // namespace

Result<RoutingTrace> ReadRoutingTrace(const std::string& path) {
  TROUPE_ASSIGN_OR_RETURN(RoutingTrace trace,
                          path.ends_with(".json") ? FromRecording(path) : FromTrace(path));
  if (Status valid = Validate(trace); !valid.ok()) return std::move(valid).WithContext(path);
  return trace;
}

Result<std::vector<std::vector<double>>> ReadExpertCounts(const std::string& path,
                                                          const std::string& model,
                                                          const std::string& task) {
  TROUPE_ASSIGN_OR_RETURN(const std::string text, ReadWhole(path));
  std::vector<std::vector<double>> counts;
  TROUPE_RETURN_IF_ERROR(ForEachLine(path, text, [&](std::size_t number, std::string_view line) {
    const auto fields = Split(line, ',');
    if (fields.size() != 5) return DataLoss("{} fields, expected 5", fields.size());
    if (number == 1 || fields[0] != model || fields[1] != task) return OkStatus();
    TROUPE_ASSIGN_OR_RETURN(const std::uint64_t layer, ParseCount(fields[2]));
    TROUPE_ASSIGN_OR_RETURN(const std::uint64_t expert, ParseCount(fields[3]));
    TROUPE_ASSIGN_OR_RETURN(const std::uint64_t count, ParseCount(fields[4]));
    if (layer >= 4096 || expert >= 65536) return DataLoss("layer {}, expert {}", layer, expert);
    if (counts.size() <= layer) counts.resize(layer + 1);
    if (counts[layer].size() <= expert) counts[layer].resize(expert + 1, 0);
    counts[layer][expert] += static_cast<double>(count);
    return OkStatus();
  }));
  if (counts.empty()) {
    return Error(Code::kNotFound, "{}: no row of model '{}', task '{}'", path, model, task);
  }
  for (const std::vector<double>& layer : counts) {
    if (layer.size() != counts.front().size()) {
      return DataLoss("{}: layers of {} and {} experts", path, counts.front().size(), layer.size());
    }
  }
  return counts;
}

Result<std::vector<RecordedRequest>> ReadRequests(const std::string& path) {
  TROUPE_ASSIGN_OR_RETURN(const std::string text, ReadWhole(path));
  const bool csv = path.find(".csv") != std::string::npos;
  std::vector<RecordedRequest> requests;
  TROUPE_RETURN_IF_ERROR(ForEachLine(path, text, [&](std::size_t number, std::string_view line) {
    if (csv && number == 1) return OkStatus();
    TROUPE_ASSIGN_OR_RETURN(const RecordedRequest request,
                            csv ? AzureRequest(line) : MooncakeRequest(line));
    requests.push_back(request);
    return OkStatus();
  }));
  if (requests.empty()) return DataLoss("{}: no requests", path);
  std::stable_sort(requests.begin(), requests.end(),
                   [](const auto& a, const auto& b) { return a.seconds < b.seconds; });
  const double first = requests.front().seconds;
  for (RecordedRequest& request : requests) request.seconds -= first;
  return requests;
}

}  // namespace troupe
