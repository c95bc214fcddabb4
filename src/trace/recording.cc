#include "trace/recording.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <optional>

#include "base/half.h"
#include "base/json_value.h"
#include "io/read_whole.h"

namespace troupe {
namespace {

struct ScoreFile {
  std::string file;
  bool bf16 = false;
  double scale = 1;
};

struct Meta {
  Recording recording;
  std::string ids_file;
  std::optional<ScoreFile> scores;
};

std::string NameOr(const JsonValue& json, const char* key, const std::string& otherwise) {
  return json.Has(key) ? json.At(key).String() : otherwise;
}

void ReadSequences(const JsonValue& json, const std::string& domain, Recording& to) {
  const bool plain = json.Has("sequence_lengths");
  const JsonValue sequences = json.At(plain ? "sequence_lengths" : "sequences");
  std::uint64_t tokens = 0;
  for (std::size_t i = 0; i < sequences.size(); ++i) {
    const JsonValue one = sequences.At(i);
    Recording::Sequence sequence{.domain = domain};
    sequence.tokens =
        static_cast<std::uint32_t>((plain ? one : one.At("length")).Count(1, to.tokens));
    if (!plain && one.Has("first_position")) {
      sequence.position = static_cast<std::uint32_t>(one.At("first_position").Count(0, 1u << 30));
    }
    if (!plain && one.Has("dataset")) {
      sequence.domain = one.At("dataset").String();
      if (one.Has("category")) {
        sequence.domain = fmt::format("{}/{}", sequence.domain, one.At("category").String());
      }
    }
    tokens += sequence.tokens;
    to.sequences.push_back(std::move(sequence));
  }
  if (tokens != to.tokens) sequences.Fail(fmt::format("lengths that add up to {}", to.tokens));
}

Meta ReadMeta(const JsonValue& json) {
  Meta meta;
  Recording& to = meta.recording;
  const auto count = [&](const char* key, std::uint64_t least, std::uint64_t most) {
    return static_cast<std::uint32_t>(json.At(key).Count(least, most));
  };
  const std::uint32_t moe_layers =
      count(json.Has("num_moe_layers") ? "num_moe_layers" : "num_layers", 1, 2048);
  const std::uint32_t first = json.Has("first_moe_layer") ? count("first_moe_layer", 0, 2048) : 0;
  to.header.model = NameOr(json, "model", "");
  to.header.layers = first + moe_layers;
  for (std::uint32_t i = 0; i < moe_layers; ++i) to.header.moe_layers.push_back(first + i);
  to.header.experts = count("num_experts", 1, 256);
  to.header.top_k = count("top_k", 1, 256);
  to.tokens = count("num_tokens", 1, 1u << 30);
  to.header.origin = NameOr(json, "source", "");
  if (json.Has("commit")) {
    to.header.origin = fmt::format("{}, commit {}", to.header.origin, json.At("commit").String());
  }
  to.header.licence = NameOr(json, "licence", "");
  if (NameOr(json, "phase", "").starts_with("decode")) to.phase = TracePhase::kDecode;
  ReadSequences(json, NameOr(json, "task", ""), to);
  meta.ids_file = json.At("ids").At("file").String();
  if (json.Has("scores")) {
    const JsonValue scores = json.At("scores");
    const JsonValue type = scores.At("dtype");
    meta.scores = ScoreFile{.file = scores.At("file").String(),
                            .bf16 = type.String().starts_with("bfloat16"),
                            .scale = scores.NumberOr("scale", 1)};
    if (!meta.scores->bf16 && !type.String().starts_with("uint16")) {
      type.Fail("\"uint16 ...\" or \"bfloat16 ...\"");
    }
  }
  return meta;
}

Status ReadIds(const std::string& path, Recording& to) {
  TROUPE_ASSIGN_OR_RETURN(const std::string bytes, ReadWhole(path));
  if (bytes.size() != to.header.ChoicesOf(to.tokens)) {
    return DataLoss("{}: {} choices, expected {} layers x {} tokens x {}", path, bytes.size(),
                    to.header.moe_layers.size(), to.tokens, to.header.top_k);
  }
  to.ids.resize(bytes.size());
  std::ranges::transform(bytes, to.ids.begin(),
                         [](char c) { return static_cast<unsigned char>(c); });
  return OkStatus();
}

// Of the chosen experts of each token, if they are that: those of all experts add up to less.
bool AddUpToOne(const std::vector<float>& scores, std::size_t top_k) {
  constexpr double kRounding = 0.02;  // of the types in which scores are published
  for (std::size_t at = 0; at + top_k <= scores.size(); at += top_k) {
    double sum = 0;
    for (std::size_t k = 0; k < top_k; ++k) sum += scores[at + k];
    if (std::abs(sum - 1) > kRounding) return false;
  }
  return true;
}

Status ReadScores(const std::string& path, const ScoreFile& file, Recording& to) {
  TROUPE_ASSIGN_OR_RETURN(const std::string bytes, ReadWhole(path));
  if (bytes.size() != 2 * to.ids.size()) {
    return DataLoss("{}: {} bytes of scores, expected {}", path, bytes.size(), 2 * to.ids.size());
  }
  to.scores.resize(to.ids.size());
  for (std::size_t i = 0; i < to.scores.size(); ++i) {
    std::uint16_t raw;
    std::memcpy(&raw, bytes.data() + 2 * i, sizeof(raw));
    to.scores[i] = file.bf16 ? Bf16ToFloat(raw) : static_cast<float>(raw * file.scale);
  }
  to.header.scores =
      AddUpToOne(to.scores, to.header.top_k) ? ScoreKind::kChosenSoftmax : ScoreKind::kSoftmax;
  return OkStatus();
}

TraceBlock WholeBlock(const Recording& recording) {
  TraceBlock block{.tokens = recording.tokens, .ids = recording.ids, .scores = recording.scores};
  for (std::size_t i = 0; i < recording.sequences.size(); ++i) {
    const Recording::Sequence& sequence = recording.sequences[i];
    const auto known = std::ranges::find(block.domains, sequence.domain);
    TraceSegment segment{.sequence = static_cast<std::uint32_t>(i),
                         .position = sequence.position,
                         .tokens = sequence.tokens,
                         .domain = static_cast<std::uint16_t>(known - block.domains.begin()),
                         .phase = recording.phase};
    if (known == block.domains.end()) block.domains.push_back(sequence.domain);
    if (recording.phase == TracePhase::kPrefill) {
      block.segments.push_back(segment);
      continue;
    }
    segment.tokens = 1;
    for (std::uint32_t t = 0; t < sequence.tokens; ++t, ++segment.position) {
      block.segments.push_back(segment);
    }
  }
  return block;
}

}  // namespace

Result<Recording> ReadRecording(const std::string& meta_path) {
  TROUPE_ASSIGN_OR_RETURN(const std::string text, ReadWhole(meta_path));
  TROUPE_ASSIGN_OR_RETURN(Meta meta, ReadJson<Meta>(meta_path, text, [](const JsonValue& json) {
                            return ReadMeta(json);
                          }));
  Recording recording = std::move(meta.recording);
  const auto folder = std::filesystem::path(meta_path).parent_path();
  const std::string ids = (folder / meta.ids_file).string();
  TROUPE_RETURN_IF_ERROR(ReadIds(ids, recording));
  if (meta.scores) {
    TROUPE_RETURN_IF_ERROR(
        ReadScores((folder / meta.scores->file).string(), *meta.scores, recording));
  }
  if (Status valid = Validate(recording.header); !valid.ok()) {
    return std::move(valid).WithContext(meta_path);
  }
  if (Status valid = Validate(recording.header, WholeBlock(recording)); !valid.ok()) {
    return std::move(valid).WithContext(ids);
  }
  return recording;
}

Status Write(const Recording& recording, TraceWriter& writer) {
  return writer.Append(WholeBlock(recording));
}

}  // namespace troupe
