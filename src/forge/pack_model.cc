#include "forge/pack_model.h"

#include <algorithm>
#include <functional>
#include <span>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/first_error.h"
#include "base/thread_pool.h"
#include "forge/rewrite.h"
#include "forge/tensor_mix.h"
#include "model/config.h"
#include "model/expert_layout.h"
#include "model/weight_loader.h"
#include "quant/convert_row.h"
#include "quant/panel.h"
#include "store/model_fingerprint.h"

namespace troupe {
namespace {

// Experts that are packed before they are written: enough to keep all threads busy, and one at
// least, however large.
constexpr std::uint64_t kBatchBytes = 64 << 20;
// Read and packed at once: an expert of several hundred megabytes is shared by all threads too.
constexpr std::uint64_t kPieceBytes = 512 << 10;

// Some panels of one matrix of an expert.
struct Piece {
  std::size_t matrix = 0;
  std::size_t first_row = 0;
  std::size_t rows = 0;
};

std::vector<Piece> CutIntoPieces(const ExpertLayout& layout) {
  std::vector<Piece> pieces;
  for (std::size_t m = 0; m < layout.matrices.size(); ++m) {
    const ExpertMatrix& matrix = layout.matrices[m];
    const std::uint64_t panel_bytes = kPanelRows * RowBytes(matrix.type, matrix.cols).count();
    const std::size_t step = std::max<std::uint64_t>(1, kPieceBytes / panel_bytes) * kPanelRows;
    for (std::size_t row = 0; row < matrix.rows; row += step) {
      pieces.push_back({m, row, std::min(step, matrix.rows - row)});
    }
  }
  return pieces;
}

// The layers of one precision: each as the model has it and as it will be in the container.
struct PackedLayer {
  const GgufModel* model = nullptr;  // that it is read from
  std::uint32_t number = 0;
  ExpertLayout source;
  ExpertLayout target;
};

class Packer {
 public:
  Packer(const PackOptions& options, ContainerWriter& writer, Bytes total)
      : options_(options),
        writer_(writer),
        total_(total),
        threads_(options.threads),
        scratch_(threads_.threads()) {}

  Status Pack(const PackedLayer& layer, std::uint32_t experts);

 private:
  struct Scratch {  // a thread's own
    std::vector<std::byte> read, converted;
    std::vector<float> floats;
  };

  Status PackBatch(const PackedLayer& layer, std::uint32_t first, std::uint32_t count);
  Status PackPiece(const PackedLayer& layer, std::uint32_t expert, const Piece& piece,
                   std::span<std::byte> slot, Scratch& scratch) const;
  Status Convert(const GgufModel& model, const ExpertMatrix& from, const ExpertMatrix& to,
                 std::uint64_t first_row, Scratch& scratch) const;

  const PackOptions& options_;
  ContainerWriter& writer_;
  Bytes total_, done_;
  ThreadPool threads_;
  std::vector<Scratch> scratch_;
  std::vector<std::byte> slots_;
};

Status Packer::Pack(const PackedLayer& layer, std::uint32_t experts) {
  const std::uint64_t slot_bytes = layer.target.SlotBytes();
  const auto batch =
      static_cast<std::uint32_t>(std::clamp<std::uint64_t>(kBatchBytes / slot_bytes, 1, experts));
  slots_.assign(batch * slot_bytes, std::byte{0});  // gaps between matrices stay so
  for (std::uint32_t first = 0; first < experts; first += batch) {
    const std::uint32_t count = std::min(batch, experts - first);
    TROUPE_RETURN_IF_ERROR(PackBatch(layer, first, count));
    for (std::uint32_t e = 0; e < count; ++e) {
      TROUPE_RETURN_IF_ERROR(writer_.Append(std::span(slots_).subspan(e * slot_bytes, slot_bytes)));
    }
    done_ += Bytes(count * layer.source.SourceBytes());
    TROUPE_RETURN_IF_ERROR(Report(options_.progress, done_, total_));
  }
  return OkStatus();
}

Status Packer::PackBatch(const PackedLayer& layer, std::uint32_t first, std::uint32_t count) {
  const std::vector<Piece> pieces = CutIntoPieces(layer.source);
  const std::uint64_t slot_bytes = layer.target.SlotBytes();
  FirstError error;
  threads_.Run(count * pieces.size(), [&](std::size_t task, std::size_t thread) {
    const std::size_t e = task / pieces.size();
    error.Note(task,
               PackPiece(layer, first + static_cast<std::uint32_t>(e), pieces[task % pieces.size()],
                         std::span(slots_).subspan(e * slot_bytes, slot_bytes), scratch_[thread]));
  });
  return error.Take();
}

Status Packer::PackPiece(const PackedLayer& layer, std::uint32_t expert, const Piece& piece,
                         std::span<std::byte> slot, Scratch& scratch) const {
  const ExpertMatrix& from = layer.source.matrices[piece.matrix];
  const ExpertMatrix& to = layer.target.matrices[piece.matrix];
  const std::uint64_t from_bytes = RowBytes(from.type, from.cols).count();
  const std::uint64_t to_bytes = RowBytes(to.type, to.cols).count();
  const std::uint64_t first_row = from.FirstRow(expert) + piece.first_row;  // of the tensor
  scratch.read.resize(piece.rows * from_bytes);
  TROUPE_RETURN_IF_ERROR(
      layer.model->ReadRange(*from.tensor, first_row * from_bytes, scratch.read));
  std::span<const std::byte> rows = scratch.read;
  if (to.type != from.type) {
    scratch.converted.resize(piece.rows * to_bytes);
    TROUPE_RETURN_IF_ERROR(Convert(*layer.model, from, to, first_row, scratch));
    rows = scratch.converted;
  }
  PackPanels(to.type, piece.rows, to.cols, rows,
             slot.subspan(to.slot_offset + piece.first_row * to_bytes,
                          PanelBytes(to.type, piece.rows, to.cols)));
  return OkStatus();
}

Status Packer::Convert(const GgufModel& model, const ExpertMatrix& from, const ExpertMatrix& to,
                       std::uint64_t first_row, Scratch& scratch) const {
  const std::uint64_t from_bytes = RowBytes(from.type, from.cols).count();
  const std::uint64_t to_bytes = RowBytes(to.type, to.cols).count();
  scratch.floats.resize(from.cols);
  for (std::uint64_t r = 0; r * from_bytes < scratch.read.size(); ++r) {
    TROUPE_RETURN_IF_ERROR(
        ConvertRow(from.type, std::span(scratch.read).subspan(r * from_bytes, from_bytes), to.type,
                   options_.rounding, std::span(scratch.converted).subspan(r * to_bytes, to_bytes),
                   scratch.floats,
                   fmt::format("{}: tensor '{}', row {}", model.files()[from.tensor->file].path(),
                               from.tensor->name, first_row + r)));
  }
  return OkStatus();
}

ExpertLayout LowLayout(const ExpertLayout& layout, TensorType low) {
  ExpertTypes types;
  for (std::size_t m = 0; m < types.size(); ++m) {
    types[m] = LowTypeFor(layout.matrices[m].type, layout.matrices[m].cols, low);
  }
  return layout.In(types);
}

using Precisions = std::vector<std::vector<PackedLayer>>;

// A model and how its experts lie.
struct Source {
  const GgufModel* model;
  ExpertLayouts layouts;
};

Precisions PrecisionsOf(const Source& own, const Source& low_from, std::optional<TensorType> low) {
  Precisions precisions(low ? 2 : 1);
  for (std::uint32_t layer = 0; layer < own.layouts.size(); ++layer) {
    const ExpertLayout& layout = own.layouts[layer];
    if (layout.matrices[0].tensor == nullptr) continue;
    precisions[0].push_back({own.model, layer, layout, layout});
    if (!low) continue;
    // What it is made from says nothing about its type: it has to be smaller than the first copy.
    const ExpertLayout& from = low_from.layouts[layer];
    precisions[1].push_back({low_from.model, layer, from, LowLayout(layout, *low)});
  }
  return precisions;
}

Status CheckSameShapes(const Source& own, const Source& low_from) {
  const auto differ = [](const ExpertMatrix& a, const ExpertMatrix& b) {
    if (a.tensor == nullptr || b.tensor == nullptr) return a.tensor != b.tensor;
    return a.tensor->dims != b.tensor->dims;
  };
  bool same = own.layouts.size() == low_from.layouts.size();
  for (std::size_t layer = 0; same && layer < own.layouts.size(); ++layer) {
    same = std::ranges::equal(own.layouts[layer].matrices, low_from.layouts[layer].matrices,
                              std::not_fn(differ));
  }
  if (same) return OkStatus();
  return InvalidArgument(
      "{}: experts of other shapes than in {}; the model it was made from expected",
      low_from.model->path(), own.model->path());
}

Result<Source> SourceOf(const GgufModel& model) {
  TROUPE_ASSIGN_OR_RETURN(const ModelConfig config, ReadModelConfig(model.metadata()));
  TROUPE_ASSIGN_OR_RETURN(WeightMeasure measure, MeasureWeights(model, config));
  return Source{&model, std::move(measure.experts)};
}

ContainerIndex IndexOf(const Precisions& precisions, std::uint32_t experts,
                       const ModelFingerprint& fingerprint) {
  ContainerIndex index = {.model = fingerprint,
                          .panel_layout = kPanelLayoutVersion,
                          .experts = experts,
                          .precisions = {}};
  for (const std::vector<PackedLayer>& layers : precisions) {
    std::vector<ContainerLayer>& out = index.precisions.emplace_back();
    for (const PackedLayer& layer : layers) {
      const std::array<ExpertMatrix, 3>& matrices = layer.target.matrices;
      out.push_back({.layer = layer.number,
                     .types = {matrices[0].type, matrices[1].type, matrices[2].type},
                     .expert_bytes = layer.target.SlotBytes(),
                     .offset = 0,
                     .checksums = {}});
    }
  }
  return index;
}

PackReport ReportOn(const Precisions& precisions, std::uint32_t experts,
                    std::optional<TensorType> low) {
  PackReport report = {.layers = static_cast<std::uint32_t>(precisions[0].size()),
                       .experts = experts};
  for (const PackedLayer& layer : precisions[0]) {
    report.full += Bytes(experts * layer.target.SlotBytes());
  }
  if (!low) return report;
  for (const PackedLayer& layer : precisions[1]) {
    report.low += Bytes(experts * layer.target.SlotBytes());
    for (const ExpertMatrix& matrix : layer.target.matrices) {
      if (matrix.type != *low) ++report.fallbacks;
    }
  }
  return report;
}

Bytes BytesToRead(const Precisions& precisions, std::uint32_t experts) {
  Bytes sum;
  for (const std::vector<PackedLayer>& layers : precisions) {
    for (const PackedLayer& layer : layers) sum += Bytes(experts * layer.source.SourceBytes());
  }
  return sum;
}

}  // namespace

// Converting a matrix that does not become smaller could only harm.
TensorType LowTypeFor(TensorType type, std::uint64_t cols, TensorType low) {
  const TensorType fitting = FittingType(low, cols);
  return RowBytes(fitting, cols) < RowBytes(type, cols) ? fitting : type;
}

Result<UnpublishedContainer> PackModelUnpublished(const GgufModel& model,
                                                  const PackOptions& options,
                                                  const std::string& path) {
  TROUPE_RETURN_IF_ERROR(CheckNotInPlace(model, path));
  TROUPE_ASSIGN_OR_RETURN(const ModelConfig config, ReadModelConfig(model.metadata()));
  const std::uint32_t experts = config.moe.routing.experts;
  TROUPE_ASSIGN_OR_RETURN(const Source own, SourceOf(model));
  TROUPE_ASSIGN_OR_RETURN(const Source low_from,
                          SourceOf(options.low_from == nullptr ? model : *options.low_from));
  TROUPE_RETURN_IF_ERROR(CheckSameShapes(own, low_from));
  if (options.low_from != nullptr) TROUPE_RETURN_IF_ERROR(CheckNotInPlace(*options.low_from, path));
  const Precisions precisions = PrecisionsOf(own, low_from, options.low);
  if (experts == 0 || precisions[0].empty()) {
    return InvalidArgument("{}: a model without experts; there is nothing to pack", model.path());
  }
  PackReport report = ReportOn(precisions, experts, options.low);
  if (options.low && report.low >= report.full) {
    return InvalidArgument("{}: experts take {} in {}, and {} as they are; a smaller type expected",
                           model.path(), ToString(report.low), Name(*options.low),
                           ToString(report.full));
  }
  TROUPE_ASSIGN_OR_RETURN(const ModelFingerprint fingerprint, FingerprintModel(model));
  TROUPE_ASSIGN_OR_RETURN(ContainerWriter writer,
                          ContainerWriter::Create(path, IndexOf(precisions, experts, fingerprint)));
  report.bytes = writer.total_bytes();
  Packer packer(options, writer, BytesToRead(precisions, experts));
  for (const std::vector<PackedLayer>& layers : precisions) {
    for (const PackedLayer& layer : layers) {
      TROUPE_RETURN_IF_ERROR(packer.Pack(layer, experts));
    }
  }
  TROUPE_RETURN_IF_ERROR(writer.Seal());
  return UnpublishedContainer{std::move(writer), report};
}

Result<PackReport> PackModel(const GgufModel& model, const PackOptions& options,
                             const std::string& path) {
  TROUPE_ASSIGN_OR_RETURN(UnpublishedContainer made, PackModelUnpublished(model, options, path));
  TROUPE_RETURN_IF_ERROR(made.writer.Publish());
  return made.report;
}

}  // namespace troupe
