#include "runtime/trace_recorder.h"

#include <filesystem>
#include <utility>

#include "gguf/reader.h"
#include "model/weight_loader.h"
#include "runtime/model_work.h"
#include "store/model_fingerprint.h"

namespace troupe {
namespace {

constexpr double kSecondsToLose = 10;  // of a run that is killed

std::string NameOf(const ModelConfig& config, const std::string& path) {
  return config.name.empty() ? std::filesystem::path(path).filename().string() : config.name;
}

void NoteWeights(const WeightMeasure& weights, TraceHeader& header) {
  for (const std::uint32_t layer : header.moe_layers) {
    const ExpertLayout& layout = weights.experts[layer];
    header.expert_bytes.push_back(layout.SlotBytes());
    if (header.expert_shape.empty()) header.expert_shape = ShapeKey(layout);
  }
}

}  // namespace

Result<TraceHeader> TraceHeaderOf(const Engine& engine, TraceScores scores) {
  const ModelConfig& config = engine.config();
  const TopExpertsParams& routing = config.moe.routing;
  if (routing.experts == 0) {
    return InvalidArgument("{}: has no experts, so there is no routing to record", engine.path());
  }
  if (config.encoder) {
    return Error(Code::kUnimplemented,
                 "{}: an encoder-decoder, of which no trace is recorded: a trace has the same rows "
                 "in all layers",
                 engine.path());
  }
  TROUPE_ASSIGN_OR_RETURN(const GgufModel file, GgufModel::Open(engine.path()));
  TROUPE_ASSIGN_OR_RETURN(const ModelFingerprint fingerprint, FingerprintModel(file));
  TROUPE_ASSIGN_OR_RETURN(const WeightMeasure weights, MeasureWeights(file, config));
  TraceHeader header{.model = NameOf(config, engine.path()),
                     .fingerprint = ToString(fingerprint),
                     .layers = config.layers,
                     .experts = routing.experts,
                     .top_k = routing.top_k,
                     .all_scores = scores == TraceScores::kAll,
                     .sequences = engine.plan().memory.sequences};
  for (std::uint32_t layer = 0; layer < config.layers; ++layer) {
    if (config.IsMoeLayer(layer)) header.moe_layers.push_back(layer);
  }
  if (scores != TraceScores::kNone) {
    header.scores =
        routing.score == GateScore::kSigmoid ? ScoreKind::kSigmoid : ScoreKind::kSoftmax;
  }
  NoteWeights(weights, header);
  std::uint64_t routed = 0;
  for (const std::uint64_t bytes : header.expert_bytes) routed += bytes * routing.top_k;
  const std::uint64_t touched = engine.bytes_touched_per_token().count();
  header.dense_bytes = touched > routed ? touched - routed : 0;
  if (const std::optional<OffloadReport> offload = engine.offload_report()) {
    header.cache = RecordedCache{.slots = offload->shape.slots,
                                 .spare = engine.plan().spare_slots,
                                 .per_layer = !offload->shape.quotas.empty(),
                                 .shallow = engine.plan().shallow_layers,
                                 .policy = offload->policy,
                                 .predictor = offload->predictor()};
  }
  return header;
}

Bytes TraceRecorder::BytesFor(const ModelConfig& config, TraceScores scores, std::uint32_t chunk) {
  const TopExpertsParams& routing = config.moe.routing;
  std::uint64_t row = routing.top_k * sizeof(std::uint16_t);
  if (scores != TraceScores::kNone) row += routing.top_k * sizeof(float);
  if (scores == TraceScores::kAll) row += routing.experts * sizeof(float);
  const std::uint64_t layers = config.layers - config.moe.leading_dense;
  // The pass, the chunk in the making from blocks of it, joined and packed, and zstd's tables.
  return Bytes(2 * chunk * layers * row + 6 * TraceWriterOptions().chunk_bytes) + 4_MiB;
}

Result<std::unique_ptr<TraceRecorder>> TraceRecorder::Begin(Engine& engine, const std::string& path,
                                                            TraceScores scores,
                                                            std::string domain) {
  if (!engine.plan().trace || *engine.plan().trace < scores) {
    return Error(Code::kFailedPrecondition, "{}: opened without room for the trace", engine.path());
  }
  TROUPE_ASSIGN_OR_RETURN(TraceHeader header, TraceHeaderOf(engine, scores));
  TROUPE_ASSIGN_OR_RETURN(std::unique_ptr<TraceSink> sink, GrowingFile(path));
  TROUPE_ASSIGN_OR_RETURN(TraceWriter writer,
                          TraceWriter::Create(std::move(sink), std::move(header)));
  std::unique_ptr<TraceRecorder> recorder(
      new TraceRecorder(engine, std::move(writer), std::move(domain)));
  engine.transformer().set_route_observer(recorder.get());
  return recorder;
}

TraceRecorder::TraceRecorder(Engine& engine, TraceWriter writer, std::string domain)
    : engine_(engine), writer_(std::move(writer)), domain_(std::move(domain)) {}

TraceRecorder::~TraceRecorder() {
  engine_.transformer().set_route_observer(nullptr);
  if (failed_.ok()) (void)writer_.Flush().ok();
}

Status TraceRecorder::Finish() {
  if (failed_.ok()) failed_ = writer_.Finish();
  return failed_;
}

void TraceRecorder::PassBegins(const PassFacts& pass) {
  pass_ = {.domains = {domain_}, .tokens = pass.rows()};
  for (const RowGroupFacts& group : pass.groups) {
    TROUPE_CHECK(group.guessed == 0);  // a trace is of texts
    if (numbers_.size() <= group.sequence) numbers_.resize(group.sequence + 1, sequences_);
    if (group.position == 0) numbers_[group.sequence] = sequences_++;
    pass_.segments.push_back(
        {.sequence = numbers_[group.sequence],
         .position = group.position,
         .tokens = group.rows,
         .phase = group.phase == Phase::kPrompt ? TracePhase::kPrefill : TracePhase::kDecode,
         .joins = !pass_.segments.empty(),
         .place = static_cast<std::uint16_t>(group.sequence)});
  }
  layers_seen_ = 0;
}

void TraceRecorder::Routed(std::uint32_t layer, std::span<const ExpertChoice> chosen,
                           std::span<const float> scores) {
  const TraceHeader& header = writer_.header();
  TROUPE_CHECK(layers_seen_ < header.moe_layers.size() && header.moe_layers[layers_seen_] == layer);
  ++layers_seen_;
  for (std::size_t i = 0; i < chosen.size(); ++i) {
    pass_.ids.push_back(static_cast<std::uint16_t>(chosen[i].expert));
    if (header.scores == ScoreKind::kNone) continue;
    pass_.scores.push_back(scores[i / header.top_k * header.experts + chosen[i].expert]);
  }
  if (header.all_scores)
    pass_.all_scores.insert(pass_.all_scores.end(), scores.begin(), scores.end());
}

void TraceRecorder::PassEnded() {
  if (!failed_.ok()) return;
  failed_ = writer_.Append(std::exchange(pass_, {}));
  if (!failed_.ok() || since_written_.Seconds() < kSecondsToLose) return;
  since_written_ = Stopwatch();
  failed_ = writer_.Flush();
}

}  // namespace troupe
