#include "lab/cut_calibration.h"

#include <algorithm>
#include <cmath>
#include <memory>

#include "lab/cut_fit.h"
#include "lab/cut_study.h"
#include "split/codec/code_entropy.h"
#include "split/codec/coded_rows.h"
#include "split/codec/state_codec.h"

namespace troupe {
namespace {

std::vector<StateCode> CodesOf(const CutCalibrationOptions& options, const CutBasis& basis) {
  std::vector<StateCode> codes = {{}, {.form = StateForm::kInt8}, {.form = StateForm::kInt4}};
  for (const double share : options.rank_shares) {
    const auto rank = static_cast<std::uint32_t>(std::lround(share * basis.width));
    for (const StateForm form : {StateForm::kInt8, StateForm::kInt4}) {
      codes.push_back({.rank = std::clamp(rank, 1u, basis.ranks()), .form = form});
    }
  }
  return codes;
}

// Text of no more tokens than a text has.
std::size_t Positions(const CutText& text) {
  return std::min(text.window, text.ids.size() + (text.begin ? 1 : 0));
}

Result<CutModel> CutFor(Engine& engine, std::uint32_t layer, std::size_t variants,
                        const CutText& text) {
  return CutModel::Create(engine, layer, variants, Positions(text));
}

Result<CutFitter> FitterOn(Engine& engine, std::uint32_t layer, const CutText& text,
                           bool with_outputs) {
  TROUPE_ASSIGN_OR_RETURN(CutModel model, CutFor(engine, layer, with_outputs ? 1 : 0, text));
  TROUPE_ASSIGN_OR_RETURN(const RecordedCut rows, RecordCut(model, text));
  return CutFitter::Create(
      layer, {.width = engine.config().width, .states = rows.states, .outputs = rows.outputs});
}

constexpr std::size_t kRowsOfMessage = 64;  // of those that an entropy coder is measured on

// A code at work, and what an entropy coder would make of its messages.
class MeasuredCodec {
 public:
  static Result<std::shared_ptr<MeasuredCodec>> Create(const std::shared_ptr<const CutBasis>& basis,
                                                       StateCode code) {
    TROUPE_ASSIGN_OR_RETURN(StateEncoder encoder, StateEncoder::Create(basis, code));
    TROUPE_ASSIGN_OR_RETURN(StateDecoder decoder, StateDecoder::Create(basis, code));
    return std::make_shared<MeasuredCodec>(std::move(encoder), std::move(decoder));
  }
  MeasuredCodec(StateEncoder encoder, StateDecoder decoder)
      : encoder_(std::move(encoder)), decoder_(std::move(decoder)) {}

  Result<std::vector<float>> Cross(std::uint32_t first, std::span<const float> rows) {
    const std::vector<std::byte> message = encoder_.Encode(first, rows);
    if (encoder_.code().form != StateForm::kFloat) {
      TROUPE_ASSIGN_OR_RETURN(const StateFrame frame, ReadFrame(message));
      entropy_.Add(frame, RowsOf(std::span(message)));
      AddToMessages(frame, RowsOf(std::span(message)));
    }
    TROUPE_ASSIGN_OR_RETURN(StateDecoder::States states, decoder_.Decode(message));
    return std::move(states.rows);
  }
  double BitsACode() const { return entropy_.BitsACode(); }
  // Of a row on average; behind the last row.
  double RansBytes() {
    if (!waiting_.empty()) CodeMessage(waiting_);
    waiting_.clear();
    return rows_ == 0 ? 0 : static_cast<double>(rans_bytes_) / static_cast<double>(rows_);
  }

 private:
  // How many rows cross together depends on the memory here; what is found may not.
  void AddToMessages(const StateFrame& frame, std::span<const std::byte> rows) {
    frame_ = frame;
    waiting_.insert(waiting_.end(), rows.begin(), rows.end());
    const std::size_t whole = kRowsOfMessage * frame.row_bytes();
    std::size_t coded = 0;
    for (; waiting_.size() - coded >= whole; coded += whole) {
      CodeMessage(std::span(waiting_).subspan(coded, whole));
    }
    waiting_.erase(waiting_.begin(), waiting_.begin() + static_cast<std::ptrdiff_t>(coded));
  }

  void CodeMessage(std::span<const std::byte> rows) {
    frame_.rows = static_cast<decltype(frame_.rows)>(rows.size() / frame_.row_bytes());
    std::vector<std::byte> coded;
    AppendCodedRows(frame_, rows, coded);
    rans_bytes_ += std::min(coded.size(), rows.size());
    rows_ += frame_.rows;
  }

  StateEncoder encoder_;
  StateDecoder decoder_;
  CodeEntropy entropy_;
  StateFrame frame_;                // of the last rows
  std::vector<std::byte> waiting_;  // rows for the next message
  std::size_t rans_bytes_ = 0, rows_ = 0;
};

Result<std::vector<CodePrice>> PriceOn(Engine& engine, const CutText& text,
                                       const std::shared_ptr<const CutBasis>& basis,
                                       const std::vector<StateCode>& codes) {
  std::vector<std::shared_ptr<MeasuredCodec>> codecs;
  std::vector<CutVariant> variants;
  for (const StateCode& code : codes) {
    TROUPE_ASSIGN_OR_RETURN(codecs.emplace_back(), MeasuredCodec::Create(basis, code));
    variants.push_back([codec = codecs.back()](std::uint32_t first, std::span<const float> rows) {
      return codec->Cross(first, rows);
    });
  }
  TROUPE_ASSIGN_OR_RETURN(CutModel model, CutFor(engine, basis->layer, codes.size() + 1, text));
  TROUPE_ASSIGN_OR_RETURN(const std::vector<VariantFigures> figures,
                          MeasureVariants(model, text, variants, basis->kept));
  if (figures.front().comparison.kl.most != 0) {
    return Error(Code::kInternal, "states that crossed exactly change what the model predicts");
  }
  std::vector<CodePrice> prices;
  for (std::size_t i = 0; i < codes.size(); ++i) {
    const Comparison& of = figures[i].comparison;
    if (!std::isfinite(of.perplexity_ratio.most)) {
      return InvalidArgument("a text of {} tokens is too short to tell what codes lose",
                             text.ids.size());
    }
    prices.push_back({.code = codes[i],
                      .error = figures[i].error,
                      .kl = of.kl.mean,
                      .kl_most = of.kl.most,
                      .loss = of.perplexity_ratio.mean - 1,
                      .loss_most = of.perplexity_ratio.most - 1,
                      .same_top = of.top1_agreement.mean,
                      .bits = codecs[i]->BitsACode(),
                      .rans_bytes = codecs[i]->RansBytes()});
  }
  return prices;
}

}  // namespace

std::uint32_t CutCalibrationSequences(const CutCalibrationOptions& options) {
  const std::size_t codes = 3 + 2 * options.rank_shares.size();
  return CutModel::SequencesFor(codes + 1);
}

Bytes CutCalibrationBytes(const ModelConfig& config, const CutCalibrationOptions& options,
                          std::size_t fitted_tokens) {
  const std::size_t width = config.width, ranks = options.rank_shares.size();
  const std::size_t variants = CutCalibrationSequences(options) - 1;
  // The rows and what fitting takes of them are gone when codes are measured. A window has one more
  // row, for its beginning.
  const std::size_t windows = fitted_tokens / std::max<std::size_t>(1, options.window - 1) + 1;
  const Bytes rows(2 * (fitted_tokens + windows) * width * sizeof(float));
  // Directions, and for each code with a rank the encoder's own. And of each code how often which
  // occurs in each group of 32, and a message before and behind the entropy coder.
  const Bytes codecs((4 + 2 * ranks) * width * width * sizeof(float) +
                     variants * (width / 32 + 1) * 256 * sizeof(std::uint64_t) +
                     variants * 4 * kRowsOfMessage * width);
  const Bytes passes = CutModel::BytesFor(config, variants, options.window * (2 + variants));
  return std::max(rows + CutFitter::BytesFor(width), codecs) + passes;
}

Result<PricedCut> CalibrateCut(Engine& engine, std::uint32_t layer, std::span<const TokenId> fit_on,
                               std::span<const TokenId> measure_on,
                               const CutCalibrationOptions& options) {
  TROUPE_RETURN_IF_ERROR(CheckCutLayer(engine.config(), layer));
  const auto text_of = [&options](const char* what, std::span<const TokenId> ids) {
    CutText text{.ids = ids, .window = options.window, .begin = options.begin};
    if (options.progress) {
      text.progress = [&options, what](std::size_t done, std::size_t all) {
        options.progress(what, done, all);
      };
    }
    return text;
  };
  TROUPE_ASSIGN_OR_RETURN(
      const CutFitter fitter,
      FitterOn(engine, layer, text_of("recording states", fit_on), options.task_weight > 0));
  TROUPE_ASSIGN_OR_RETURN(CutFit fit, fitter.Fit(options.task_weight));
  const std::vector<StateCode> codes = CodesOf(options, fit.basis);
  // What no code uses need not be kept.
  const StateCode& most = *std::ranges::max_element(codes, {}, &StateCode::rank);
  fit.basis.finders.resize(std::size_t{most.rank} * fit.basis.width);
  fit.basis.directions.resize(std::size_t{most.rank} * fit.basis.width);
  if (most.rank == 0) fit.basis.mean.clear();
  PricedCut cut{.basis = std::move(fit.basis),
                .text = {},
                .fitted_on = fit_on.size(),
                .measured_on = measure_on.size(),
                .codes = {}};
  TROUPE_ASSIGN_OR_RETURN(cut.codes, PriceOn(engine, text_of("measuring codes", measure_on),
                                             std::make_shared<const CutBasis>(cut.basis), codes));
  return cut;
}

}  // namespace troupe
