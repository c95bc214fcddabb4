#include "lab/cut_study.h"

#include <algorithm>

#include "base/check.h"

namespace troupe {
namespace {

// Calls run(window, first, count) for the tokens that cross at once, and ends() after each window.
template <typename Run, typename Ends>
Status ForWindows(CutModel& model, const CutText& text, Run run, Ends ends) {
  const std::size_t begin = text.begin ? 1 : 0, step = text.window - begin;
  std::vector<TokenId> window;
  for (std::size_t at = 0; at < text.ids.size(); at += step) {
    const auto part = text.ids.subspan(at, std::min(step, text.ids.size() - at));
    window.clear();
    if (text.begin) window.push_back(*text.begin);
    window.insert(window.end(), part.begin(), part.end());
    model.Restart();
    for (std::size_t i = 0; i < window.size(); i += model.most_rows()) {
      TROUPE_RETURN_IF_ERROR(run(window, i, std::min(model.most_rows(), window.size() - i)));
    }
    ends();
    if (text.progress) text.progress(at + part.size(), text.ids.size());
  }
  return OkStatus();
}

Status CheckText(const CutText& text) {
  if (text.window < 2) return InvalidArgument("a window of {} tokens, 2 expected", text.window);
  if (text.ids.size() >= 2) return OkStatus();
  return InvalidArgument("a text of {} tokens at the cut, at least 2 expected", text.ids.size());
}

// Mean over rows of the share that is lost.
class LostShare {
 public:
  LostShare(std::size_t width, std::span<const std::uint32_t> kept) : counts_(width, true) {
    for (const std::uint32_t channel : kept) counts_[channel] = false;
  }

  void Add(std::span<const float> rows, std::span<const float> others) {
    TROUPE_CHECK(rows.size() == others.size());
    const std::size_t width = counts_.size();
    for (std::size_t at = 0; at < rows.size(); at += width) {
      double lost = 0, whole = 0;
      for (std::size_t c = 0; c < width; ++c) {
        if (!counts_[c]) continue;
        const double x = rows[at + c], difference = x - others[at + c];
        lost += difference * difference;
        whole += x * x;
      }
      sum_ += whole > 0 ? lost / whole : 0;
      ++rows_;
    }
  }
  double Mean() const { return rows_ == 0 ? 0 : sum_ / static_cast<double>(rows_); }

 private:
  std::vector<bool> counts_;  // of the channels
  double sum_ = 0;
  std::size_t rows_ = 0;
};

}  // namespace

Result<RecordedCut> RecordCut(CutModel& model, const CutText& text) {
  TROUPE_CHECK(model.variants() <= 1);
  TROUPE_RETURN_IF_ERROR(CheckText(text));
  const std::size_t windows = text.begin ? text.ids.size() / (text.window - 1) + 1 : 0;
  RecordedCut all;
  all.states.reserve((text.ids.size() + windows) * model.width());
  all.outputs.reserve(model.variants() * (text.ids.size() + windows) * model.width());
  const auto run = [&](const std::vector<TokenId>& window, std::size_t first,
                       std::size_t count) -> Status {
    TROUPE_ASSIGN_OR_RETURN(const std::span<const float> rows,
                            model.RunBelow(std::span(window).subspan(first, count)));
    all.states.insert(all.states.end(), rows.begin(), rows.end());
    if (model.variants() == 0) return OkStatus();
    TROUPE_RETURN_IF_ERROR(model.RunAbove({&rows, 1}));
    const std::vector<float> outputs = model.Outputs();
    all.outputs.insert(all.outputs.end(), outputs.begin(), outputs.end());
    return OkStatus();
  };
  TROUPE_RETURN_IF_ERROR(ForWindows(model, text, run, [] {}));
  return all;
}

Result<std::vector<VariantFigures>> MeasureVariants(CutModel& model, const CutText& text,
                                                    std::span<const CutVariant> variants,
                                                    std::span<const std::uint32_t> kept) {
  TROUPE_CHECK(model.variants() == variants.size() + 1);
  TROUPE_RETURN_IF_ERROR(CheckText(text));
  const std::size_t begin = text.begin ? 1 : 0;
  const std::size_t block =
      BlockLength(text.ids.size(), std::min(text.window, text.ids.size() + begin) - 1);
  std::vector<ComparedLogits> compared(variants.size(), ComparedLogits(block));
  std::vector<LostShare> lost(variants.size(), LostShare(model.width(), kept));
  const auto run = [&](const std::vector<TokenId>& window, std::size_t first,
                       std::size_t count) -> Status {
    TROUPE_ASSIGN_OR_RETURN(const std::span<const float> rows,
                            model.RunBelow(std::span(window).subspan(first, count)));
    std::vector<std::vector<float>> others;
    std::vector<std::span<const float>> crossing = {rows};
    for (std::size_t i = 0; i < variants.size(); ++i) {
      TROUPE_ASSIGN_OR_RETURN(std::vector<float> other,
                              variants[i](static_cast<std::uint32_t>(first), rows));
      lost[i].Add(rows, other);
      others.push_back(std::move(other));
    }
    crossing.insert(crossing.end(), others.begin(), others.end());
    TROUPE_RETURN_IF_ERROR(model.RunAbove(crossing));
    // Row i predicts token i + 1; the last row predicts one that is not in the window.
    for (std::size_t i = 0; i < count && first + i + 1 < window.size(); ++i) {
      const std::span<const float> logits = model.Logits(i);
      for (std::size_t v = 0; v < variants.size(); ++v) {
        compared[v].Add(static_cast<std::size_t>(window[first + i + 1]),
                        logits.first(model.vocabulary()),
                        logits.subspan((v + 1) * model.vocabulary(), model.vocabulary()));
      }
    }
    return OkStatus();
  };
  TROUPE_RETURN_IF_ERROR(ForWindows(model, text, run, [&compared] {
    for (ComparedLogits& of : compared) of.EndWindow();
  }));
  std::vector<VariantFigures> figures;
  for (std::size_t i = 0; i < variants.size(); ++i) {
    figures.push_back({.comparison = compared[i].Get(), .error = lost[i].Mean()});
  }
  return figures;
}

}  // namespace troupe
