#include "placement/problem.h"

#include <algorithm>
#include <cmath>

namespace troupe {
namespace {

constexpr double kMostNumber = 1e18;  // sums of a few million of these stay finite

bool IsPositive(double x) { return std::isfinite(x) && x > 0 && x < kMostNumber; }

Status ValidateLink(const Link& link, const std::string& which) {
  if (!std::isfinite(link.latency_seconds) || link.latency_seconds < 0) {
    return InvalidArgument("{}: a latency of {} s, expected zero or more", which,
                           link.latency_seconds);
  }
  if (!IsPositive(link.bytes_per_second)) {
    return InvalidArgument("{}: a bandwidth of {} bytes/s, expected a positive number", which,
                           link.bytes_per_second);
  }
  return OkStatus();
}

Status ValidateLinks(const PlacementProblem& problem) {
  TROUPE_RETURN_IF_ERROR(ValidateLink(problem.links.usual, "the usual link"));
  for (const auto& [pair, link] : problem.links.pairs) {
    const auto [from, to] = pair;
    if (from >= problem.server_count() || to >= problem.server_count() || from == to) {
      return InvalidArgument("link from server {} to server {}: expected two of 0 to {}", from, to,
                             problem.server_count() - 1);
    }
    TROUPE_RETURN_IF_ERROR(
        ValidateLink(link, fmt::format("link from server {} to server {}", from, to)));
  }
  return OkStatus();
}

Status ValidateServer(const PlacementServer& server, std::size_t experts) {
  if (server.devices.empty()) return InvalidArgument("server '{}' has no device", server.name);
  for (std::size_t d = 0; d < server.devices.size(); ++d) {
    const PlacementDevice& device = server.devices[d];
    if (!IsPositive(device.speed) || !IsPositive(device.load_bytes_per_second)) {
      return InvalidArgument(
          "server '{}', device {}: speed {} and loading at {} bytes/s, expected positive numbers",
          server.name, d, device.speed, device.load_bytes_per_second);
    }
    if (static_cast<double>(device.memory) > kMostNumber) {
      return InvalidArgument("server '{}', device {}: {} bytes of memory, at most {:g} expected",
                             server.name, d, device.memory, kMostNumber);
    }
  }
  if (server.activations.size() != experts) {
    return InvalidArgument("server '{}' has activations of {} experts, the model has {}",
                           server.name, server.activations.size(), experts);
  }
  for (const double f : server.activations) {
    if (!std::isfinite(f) || f < 0 || f > kMostNumber) {
      return InvalidArgument("server '{}': an activation frequency of {}, expected 0 to {:g}",
                             server.name, f, kMostNumber);
    }
  }
  return OkStatus();
}

// Necessary conditions, the cheapest first. They are sufficient only with equal sizes, where slots
// can be counted; with unequal ones a placement is a packing problem.
Status ValidateMemory(const PlacementProblem& problem) {
  std::uint64_t largest = 0, total = 0;
  for (const PlacementServer& server : problem.servers) {
    total += server.memory();
    for (const PlacementDevice& device : server.devices) {
      largest = std::max(largest, device.memory);
    }
  }
  for (ExpertIndex e = 0; e < problem.experts.size(); ++e) {
    if (problem.experts.BytesOf(e) > largest) {
      return Error(Code::kResourceExhausted,
                   "{}: {} fit on no device, the largest has {} for experts",
                   ToString(problem.experts.Id(e)), ToString(Bytes(problem.experts.BytesOf(e))),
                   ToString(Bytes(largest)));
    }
  }
  if (problem.experts.total_bytes() > total) {
    return Error(Code::kResourceExhausted,
                 "no placement covers all experts: they need {}, all devices together have {}",
                 ToString(Bytes(problem.experts.total_bytes())), ToString(Bytes(total)));
  }
  if (!problem.experts.equal_bytes()) return OkStatus();
  // Bytes may suffice while devices do not: 1.5 experts' memory on each of two holds 2, not 3.
  std::uint64_t slots = 0;
  for (std::uint32_t n = 0; n < problem.server_count(); ++n) slots += problem.SlotsOf(n);
  if (slots < problem.experts.size()) {
    return Error(Code::kResourceExhausted,
                 "no placement covers all experts: the devices hold {} of {} bytes each, the model "
                 "has {}",
                 slots, *problem.experts.equal_bytes(), problem.experts.size());
  }
  return OkStatus();
}

}  // namespace

ExpertTable::ExpertTable(const std::vector<std::vector<Bytes>>& bytes) {
  for (std::size_t layer = 0; layer < bytes.size(); ++layer) {
    for (const Bytes size : bytes[layer]) {
      bytes_.push_back(size.count());
      layer_of_.push_back(static_cast<std::uint32_t>(layer));
      total_ += size.count();
    }
    first_.push_back(size());
  }
  const bool equal = std::all_of(bytes_.begin(), bytes_.end(),
                                 [this](std::uint64_t size) { return size == bytes_.front(); });
  if (!bytes_.empty() && equal) equal_ = bytes_.front();
}

ExpertTable ExpertTable::Equal(std::uint32_t layers, std::uint32_t experts, Bytes each) {
  return ExpertTable(std::vector<std::vector<Bytes>>(layers, std::vector<Bytes>(experts, each)));
}

double PlacementServer::speed() const {
  double sum = 0;
  for (const PlacementDevice& device : devices) sum += device.speed;
  return sum;
}

std::uint64_t PlacementServer::memory() const {
  std::uint64_t sum = 0;
  for (const PlacementDevice& device : devices) sum += device.memory;
  return sum;
}

const Link& LinkTable::Between(std::uint32_t from, std::uint32_t to) const {
  if (pairs.empty()) return usual;
  const auto found = pairs.find({from, to});
  return found == pairs.end() ? usual : found->second;
}

std::span<const double> PlacementProblem::Activations(std::uint32_t server,
                                                      std::uint32_t layer) const {
  return std::span(servers[server].activations)
      .subspan(experts.FirstOf(layer), experts.CountIn(layer));
}

std::uint64_t PlacementProblem::SlotsOf(std::uint32_t server) const {
  std::uint64_t slots = 0;
  for (const PlacementDevice& device : servers[server].devices) {
    slots += device.memory / *experts.equal_bytes();
  }
  return slots;
}

Status Validate(const PlacementProblem& problem) {
  if (problem.servers.empty()) return InvalidArgument("a placement problem without servers");
  if (problem.experts.size() == 0) return InvalidArgument("a placement problem without experts");
  std::uint32_t fewest = problem.experts.size();
  for (std::uint32_t layer = 0; layer < problem.experts.layers(); ++layer) {
    fewest = std::min(fewest, problem.experts.CountIn(layer));
  }
  if (fewest == 0) return InvalidArgument("a layer without experts");
  if (problem.experts_per_token < 1 || problem.experts_per_token > fewest) {
    return InvalidArgument("{} experts per token, expected 1 to {}", problem.experts_per_token,
                           fewest);
  }
  for (ExpertIndex e = 0; e < problem.experts.size(); ++e) {
    if (problem.experts.BytesOf(e) == 0 ||
        static_cast<double>(problem.experts.BytesOf(e)) > kMostNumber / 1e6) {
      return InvalidArgument("{}: a size of {} bytes, expected 1 to {:g}",
                             ToString(problem.experts.Id(e)), problem.experts.BytesOf(e),
                             kMostNumber / 1e6);
    }
  }
  for (const PlacementServer& server : problem.servers) {
    TROUPE_RETURN_IF_ERROR(ValidateServer(server, problem.experts.size()));
  }
  TROUPE_RETURN_IF_ERROR(ValidateLinks(problem));
  return ValidateMemory(problem);
}

}  // namespace troupe
