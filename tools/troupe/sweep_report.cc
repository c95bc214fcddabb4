#include "troupe/sweep_report.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "base/bytes.h"
#include "plot/html_page.h"
#include "plot/line_chart.h"

namespace troupe {
namespace {

constexpr double kMebibyte = 1 << 20;

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

Interval LossOf(const SweepPoint& p) {
  return {.mean = p.perplexity_ratio.mean - 1,
          .least = p.perplexity_ratio.least - 1,
          .most = p.perplexity_ratio.most - 1};
}

Interval SpeedOf(const SweepPoint& p) {
  return {.mean = p.tokens_per_s, .least = p.tokens_per_s, .most = p.tokens_per_s};
}

std::string LossText(const SweepPoint& p) {
  const Interval loss = LossOf(p);
  const std::string mean = fmt::format("{:+.2f} %", 100 * loss.mean);
  if (!std::isfinite(loss.least) || !std::isfinite(loss.most)) return mean;
  return fmt::format("{} ({:+.2f} to {:+.2f})", mean, 100 * loss.least, 100 * loss.most);
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

void PrintSweepHead() {
  fmt::print("{:>8}  {:<34} {:<28} {:>9} {:>8} {:>11} {:>7} {:>8} {:>9}\n", "resident", "chain",
             "perplexity (95 of 100)", "mean KL", "same top", "read/token", "hits", "replaced",
             "tokens/s");
}

void Print(const SweepPoint& p) {
  fmt::print(
      "{:>6.4g} %  {:<34} {:<28} {:>9.5f} {:>6.2f} % {:>11} {:>5.1f} % {:>6.2f} % {:>9.1f}\n",
      100 * p.resident, p.chain, LossText(p), p.mean_kl.mean, 100 * p.top1_agreement.mean,
      ToString(Bytes(static_cast<std::uint64_t>(p.bytes_per_token))), 100 * p.hit_rate,
      100 * (p.substituted + p.dropped + p.low), p.tokens_per_s);
  std::fflush(stdout);
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
    page.sections.push_back({.heading = where,
                             .text = fmt::format("{} slots, {} tokens scored.", here.front()->slots,
                                                 here.front()->tokens),
                             .svgs = {ToSvg(loss), ToSvg(kl), ToSvg(speed)}});
  }
  return ToHtml(page);
}

}  // namespace troupe
