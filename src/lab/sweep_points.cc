#include "lab/sweep_points.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cmath>
#include <filesystem>
#include <limits>

#include "base/json_value.h"
#include "io/read_whole.h"

namespace troupe {
namespace {

Json IntervalJson(const Interval& interval) {
  const auto limit = [](double x) { return std::isfinite(x) ? Json(x) : Json(); };
  return {
      {"mean", interval.mean}, {"least", limit(interval.least)}, {"most", limit(interval.most)}};
}

Interval IntervalFrom(const JsonValue& json) {
  constexpr double kNoEnd = std::numeric_limits<double>::infinity();
  const auto limit = [&](const char* key, double otherwise) {
    const JsonValue value = json.At(key);
    return value.raw().IsNull() ? otherwise : value.Number();
  };
  return {.mean = json.At("mean").Number(),
          .least = limit("least", -kNoEnd),
          .most = limit("most", kNoEnd)};
}

SweepPoint PointFrom(const JsonValue& json) {
  SweepPoint point{.resident = json.At("resident").Number(),
                   .slots = static_cast<std::uint32_t>(json.At("slots").Count(1, 1u << 30)),
                   .chain = json.At("chain").String(),
                   .tokens = json.At("tokens").Count(1, std::uint64_t{1} << 50),
                   .perplexity = json.At("perplexity").Number(),
                   .perplexity_ratio = IntervalFrom(json.At("perplexity_ratio")),
                   .mean_kl = IntervalFrom(json.At("mean_kl")),
                   .top1_agreement = IntervalFrom(json.At("top1_agreement")),
                   .bytes_per_token = json.At("bytes_per_token").Number(),
                   .hit_rate = json.At("hit_rate").Number(),
                   .substituted = json.At("substituted").Number(),
                   .dropped = json.At("dropped").Number(),
                   .low = json.At("low").Number(),
                   .stall_s_per_token = json.At("stall_s_per_token").Number(),
                   .deciding_s_per_token = json.At("deciding_s_per_token").Number(),
                   .tokens_per_s = json.At("tokens_per_s").Number()};
  return point;
}

Status CheckSame(const std::string& path, const Json& found, const Json& expected) {
  for (const auto& [key, value] : expected.members()) {
    const Json* there = found.Find(key);
    if (there != nullptr && *there == value) continue;
    return Error(Code::kFailedPrecondition,
                 "{}, line 1: {} {}, expected {}: points of another sweep; give it a folder of its "
                 "own",
                 path, key, there == nullptr ? "is missing" : there->Dump(), value.Dump());
  }
  return OkStatus();
}

}  // namespace

Json ToJson(const SweepPoint& p) {
  return {{"resident", p.resident},
          {"slots", p.slots},
          {"chain", p.chain},
          {"tokens", p.tokens},
          {"perplexity", p.perplexity},
          {"perplexity_ratio", IntervalJson(p.perplexity_ratio)},
          {"mean_kl", IntervalJson(p.mean_kl)},
          {"top1_agreement", IntervalJson(p.top1_agreement)},
          {"bytes_per_token", p.bytes_per_token},
          {"hit_rate", p.hit_rate},
          {"substituted", p.substituted},
          {"dropped", p.dropped},
          {"low", p.low},
          {"stall_s_per_token", p.stall_s_per_token},
          {"deciding_s_per_token", p.deciding_s_per_token},
          {"tokens_per_s", p.tokens_per_s}};
}

Result<SweepPoints> SweepPoints::Open(const std::string& path, const Json& common) {
  std::string text;
  if (std::filesystem::exists(path)) {
    TROUPE_ASSIGN_OR_RETURN(text, ReadWhole(path));
    text.resize(text.rfind('\n') + 1);  // npos + 1 is 0: not even the first line is whole
  }
  std::vector<SweepPoint> points;
  std::size_t number = 0;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = text.find('\n', at);
    const std::string_view line = std::string_view(text).substr(at, end - at);
    const std::string place = fmt::format("{}, line {}", path, ++number);
    if (number == 1) {
      TROUPE_ASSIGN_OR_RETURN(const Json found, ParseJson(place, line));
      TROUPE_RETURN_IF_ERROR(CheckSame(path, found, common));
    } else {
      TROUPE_ASSIGN_OR_RETURN(SweepPoint point, ReadJson<SweepPoint>(place, line, PointFrom));
      points.push_back(std::move(point));
    }
    at = end + 1;
  }
  UniqueFd fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644));
  if (!fd.valid()) return ErrnoStatus(errno, path);
  if (::ftruncate(fd.get(), static_cast<off_t>(text.size())) != 0) return ErrnoStatus(errno, path);
  SweepPoints opened(path, std::move(fd));
  opened.points_ = std::move(points);
  if (text.empty()) TROUPE_RETURN_IF_ERROR(opened.Append(common.Dump()));
  return opened;
}

const SweepPoint* SweepPoints::Find(double resident, const std::string& chain) const {
  for (const SweepPoint& point : points_) {
    if (point.resident == resident && point.chain == chain) return &point;
  }
  return nullptr;
}

Status SweepPoints::Add(const SweepPoint& point) {
  TROUPE_RETURN_IF_ERROR(Append(ToJson(point).Dump()));
  points_.push_back(point);
  return OkStatus();
}

Status SweepPoints::Append(std::string line) {
  line += '\n';
  for (std::string_view rest = line; !rest.empty();) {
    const ssize_t written = ::write(fd_.get(), rest.data(), rest.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return ErrnoStatus(errno, path_);
    rest.remove_prefix(static_cast<std::size_t>(written));
  }
  return ::fdatasync(fd_.get()) == 0 ? OkStatus() : ErrnoStatus(errno, path_);
}

}  // namespace troupe
