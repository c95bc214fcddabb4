#include "troupe/sweep_report.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "base/bytes.h"
#include "plot/html_page.h"
#include "plot/line_chart.h"

namespace troupe {
namespace {

constexpr double kMebibyte = 1 << 20;
constexpr double kSmallLoss = 0.01;  // of perplexity

// One a policy, through its settings from the one that reads least on.
std::vector<LineSeries> Curves(std::vector<const SweepPoint*> points,
                               Interval (*value)(const SweepPoint&)) {
  std::vector<std::string> order;  // as the chains were given, whatever they read
  for (const SweepPoint* point : points) {
    const std::string policy = PolicyOf(point->chain);
    if (std::ranges::find(order, policy) == order.end()) order.push_back(policy);
  }
  std::ranges::stable_sort(points, {}, &SweepPoint::bytes_per_token);
  std::vector<LineSeries> curves;
  for (const std::string& policy : order) {
    LineSeries curve{.name = policy};
    for (const SweepPoint* point : points) {
      if (PolicyOf(point->chain) != policy) continue;
      const Interval y = value(*point);
      curve.points.emplace_back(point->bytes_per_token / kMebibyte, y.mean);
      curve.spans.emplace_back(y.least, y.most);
      curve.hints.push_back(point->chain);
    }
    curves.push_back(std::move(curve));
  }
  return curves;
}

// Where a few settings cost many times what others do, these lie on one line at the bottom: the
// same chart again, without what is above four times what three quarters of the settings cost.
std::optional<LineChart> NearExact(const LineChart& chart) {
  std::vector<double> costs;
  for (const LineSeries& series : chart.series) {
    for (const auto& point : series.points) costs.push_back(point.second);
  }
  if (costs.size() < 4) return std::nullopt;
  std::ranges::sort(costs);
  const double most = 4 * std::max(costs[costs.size() * 3 / 4], 0.0);
  if (most <= 0 || costs.back() <= most) return std::nullopt;
  LineChart near = chart;
  near.subtitle += fmt::format(", without settings beyond {:.3g}",
                               chart.y_unit == AxisUnit::kPercent ? 100 * most : most);
  if (chart.y_unit == AxisUnit::kPercent) near.subtitle += " %";
  for (LineSeries& series : near.series) {
    for (std::size_t p = series.points.size(); p > 0; --p) {
      if (series.points[p - 1].second <= most) continue;
      const auto at = static_cast<std::ptrdiff_t>(p - 1);
      series.points.erase(series.points.begin() + at);
      series.spans.erase(series.spans.begin() + at);
      series.hints.erase(series.hints.begin() + at);
    }
  }
  return near;
}

Interval LossOf(const SweepPoint& p) {
  return {.mean = p.perplexity_ratio.mean - 1,
          .least = p.perplexity_ratio.least - 1,
          .most = p.perplexity_ratio.most - 1};
}

Interval SpeedOf(const SweepPoint& p) {
  return {.mean = p.tokens_per_s, .least = p.tokens_per_s, .most = p.tokens_per_s};
}

// Settings at one size, in the order of the points; the exact one is no setting.
struct AtOneSize {
  double resident = 0;
  const SweepPoint* exact = nullptr;
  std::vector<const SweepPoint*> settings;
};

std::vector<AtOneSize> BySize(const std::vector<SweepPoint>& points) {
  std::vector<AtOneSize> sizes;
  for (const SweepPoint& point : points) {
    auto at = std::ranges::find(sizes, point.resident, &AtOneSize::resident);
    if (at == sizes.end()) at = sizes.insert(at, {.resident = point.resident});
    if (point.chain == "exact") {
      at->exact = &point;
    } else {
      at->settings.push_back(&point);
    }
  }
  return sizes;
}

std::string InBrief(const AtOneSize& size) {
  const SweepPoint* best = nullptr;
  for (const SweepPoint* point : size.settings) {
    if (LossOf(*point).mean > kSmallLoss) continue;
    if (best == nullptr || point->bytes_per_token < best->bytes_per_token) best = point;
  }
  const bool stays = best != nullptr;
  if (!stays) {
    best = *std::ranges::min_element(size.settings, {},
                                     [](const SweepPoint* p) { return LossOf(*p).mean; });
  }
  std::string line =
      fmt::format("with {:g} % of the experts in memory {} loses {:+.2f} % of perplexity",
                  100 * size.resident, best->chain, 100 * LossOf(*best).mean);
  if (size.exact != nullptr && size.exact->bytes_per_token > 0) {
    line += fmt::format(" and reads {:.0f} % of what exact answers read",
                        100 * best->bytes_per_token / size.exact->bytes_per_token);
  } else {
    line += fmt::format(" and reads {} for a token",
                        ToString(Bytes(static_cast<std::uint64_t>(best->bytes_per_token))));
  }
  return line + (stays ? "" : "; none stays within 1 %");
}

std::string LossText(const SweepPoint& p) {
  const Interval loss = LossOf(p);
  const std::string mean = fmt::format("{:+.2f} %", 100 * loss.mean);
  if (!std::isfinite(loss.least) || !std::isfinite(loss.most)) return mean;
  return fmt::format("{} ({:+.2f} to {:+.2f})", mean, 100 * loss.least, 100 * loss.most);
}

void PrintSweepHead() {
  fmt::print("{:>8}  {:<34} {:<28} {:>9} {:>8} {:>11} {:>7} {:>8} {:>9}\n", "resident", "chain",
             "perplexity (95 of 100)", "mean KL", "same top", "read/token", "hits", "replaced",
             "tokens/s");
}

void PrintRow(const SweepPoint& p) {
  fmt::print(
      "{:>6.4g} %  {:<34} {:<28} {:>9.5f} {:>6.2f} % {:>11} {:>5.1f} % {:>6.2f} % {:>9.1f}\n",
      100 * p.resident, p.chain, LossText(p), p.mean_kl.mean, 100 * p.top1_agreement.mean,
      ToString(Bytes(static_cast<std::uint64_t>(p.bytes_per_token))), 100 * p.hit_rate,
      100 * (p.substituted + p.dropped + p.low), p.tokens_per_s);
}

}  // namespace

std::string PolicyOf(const std::string& chain) {
  std::string policy;
  bool in_options = false;
  for (const char c : chain) {
    if (c == ':') in_options = true;
    if (c == '+') in_options = false;
    if (!in_options) policy += c;
  }
  return policy;
}

std::string SweepInBrief(const std::vector<SweepPoint>& points) {
  std::string brief;
  for (const AtOneSize& size : BySize(points)) {
    if (!size.settings.empty()) brief += InBrief(size) + "\n";
  }
  return brief;
}

void Print(const std::vector<SweepPoint>& points) {
  fmt::print("{}", SweepInBrief(points));
  PrintSweepHead();
  for (const SweepPoint& point : points) PrintRow(point);
}

std::string SweepPage(const std::vector<SweepPoint>& points, const std::string& title) {
  HtmlPage page{.title = title,
                .text =
                    "What answers that are not exact save, and what they cost. Each dot is one "
                    "setting of a policy, compared token by token with exact answers to the same "
                    "text; further left is less read for a token, further down is nearer to exact. "
                    "The thin lines hold the true values 95 times of 100."};
  std::vector<double> sizes;
  for (const SweepPoint& point : points) {
    if (std::ranges::find(sizes, point.resident) == sizes.end()) sizes.push_back(point.resident);
  }
  for (const double size : sizes) {
    std::vector<const SweepPoint*> here;
    for (const SweepPoint& point : points) {
      if (point.resident == size) here.push_back(&point);
    }
    const std::string where = fmt::format("{:g} % of the experts in memory", 100 * size);
    const LineChart loss{.title = "Perplexity lost",
                         .subtitle = where,
                         .x_label = "read for a token, MiB",
                         .y_label = "perplexity above exact",
                         .y_unit = AxisUnit::kPercent,
                         .series = Curves(here, LossOf)};
    const LineChart kl{.title = "Mean KL divergence",
                       .subtitle = where,
                       .x_label = "read for a token, MiB",
                       .y_label = "nats a token",
                       .series = Curves(here, [](const SweepPoint& p) { return p.mean_kl; })};
    const LineChart speed{.title = "Speed",
                          .subtitle = where,
                          .x_label = "read for a token, MiB",
                          .y_label = "tokens/s",
                          .y_least = 0,
                          .series = Curves(here, SpeedOf)};
    PageSection section{.heading = where,
                        .text = fmt::format("{} slots, {} tokens scored.", here.front()->slots,
                                            here.front()->tokens),
                        .pictures = {}};
    for (const LineChart& chart : {loss, kl}) {
      section.pictures.push_back(chart);
      if (const auto near = NearExact(chart)) section.pictures.push_back(*near);
    }
    section.pictures.push_back(speed);
    page.sections.push_back(std::move(section));
  }
  return ToHtml(page);
}

}  // namespace troupe
