#include "sim/problem_json.h"

namespace troupe {
namespace {

constexpr std::string_view kProblemFormat = "troupe placement problem";
constexpr std::string_view kPlacementFormat = "troupe placement";
constexpr std::uint64_t kMostLayers = 4096, kMostExperts = 65535, kMostServers = 100'000;
constexpr std::uint64_t kMostCells = 200'000'000;  // servers x experts: some gigabytes
constexpr std::uint64_t kMostExpertsInAll = 1u << 22, kMostDevices = 1u << 20;

void ExpectFormat(const JsonValue& json, std::string_view format) {
  if (json.At("format").String() != format) {
    json.At("format").Fail(fmt::format("\"{}\"", format));
  }
  json.At("version").Count(1, 1);
}

std::vector<Bytes> ReadLayerSizes(const JsonValue& json, std::uint64_t experts) {
  if (!json.IsArray()) return std::vector<Bytes>(experts, json.Size());
  if (json.size() == 0 || json.size() > kMostExperts) json.Fail("the size of each expert");
  std::vector<Bytes> sizes;
  for (std::size_t e = 0; e < json.size(); ++e) sizes.push_back(json.At(e).Size());
  return sizes;
}

void ReadActivations(const JsonValue& json, PlacementProblem& problem, PlacementServer& server) {
  const std::string expected = fmt::format(
      "an array of {} layers, each with its experts' frequencies", problem.experts.layers());
  if (!json.IsArray() || json.size() != problem.experts.layers()) json.Fail(expected);
  for (std::uint32_t l = 0; l < problem.experts.layers(); ++l) {
    const JsonValue layer = json.At(l);
    if (!layer.IsArray() || layer.size() != problem.experts.CountIn(l)) {
      layer.Fail(fmt::format("{} frequencies", problem.experts.CountIn(l)));
    }
    for (std::size_t e = 0; e < layer.size(); ++e) {
      server.activations.push_back(layer.At(e).Number());
    }
  }
}

Json ToJson(const Link& link) {
  return {{"latency_s", link.latency_seconds}, {"bytes_per_s", link.bytes_per_second}};
}

Link ReadLink(const JsonValue& json) {
  return {.latency_seconds = json.At("latency_s").Number(),
          .bytes_per_second = json.At("bytes_per_s").Number()};
}

}  // namespace

void ReadModel(const JsonValue& json, PlacementProblem& problem) {
  json.AllowOnly({"name", "layers", "experts", "experts_per_token", "expert_bytes"});
  const std::uint64_t layers = json.At("layers").Count(1, kMostLayers);
  const std::uint64_t experts = json.Has("experts") ? json.At("experts").Count(1, kMostExperts) : 0;
  problem.experts_per_token =
      static_cast<std::uint32_t>(json.At("experts_per_token").Count(1, kMostExperts));
  if (layers * experts > kMostExpertsInAll) {
    json.Fail(fmt::format("at most {} layers times experts", kMostExpertsInAll));
  }
  const JsonValue bytes = json.At("expert_bytes");
  if (!bytes.IsArray() && experts == 0) bytes.Fail("sizes by layer, as 'experts' is not said");
  if (bytes.IsArray() && bytes.size() != layers) {
    bytes.Fail(fmt::format("an array of {} layers", layers));
  }
  std::vector<std::vector<Bytes>> sizes;
  for (std::size_t l = 0; l < layers; ++l) {
    const JsonValue layer = bytes.IsArray() ? bytes.At(l) : bytes;
    if (!layer.IsArray() && experts == 0) layer.Fail("an array, as 'experts' is not said");
    sizes.push_back(ReadLayerSizes(layer, experts));
  }
  problem.experts = ExpertTable(sizes);
}

void ReadServers(const JsonValue& json, PlacementProblem& problem) {
  if (!json.IsArray()) json.Fail("an array of servers");
  std::uint64_t all_devices = 0;
  for (std::size_t i = 0; i < json.size(); ++i) {
    const JsonValue one = json.At(i);
    one.AllowOnly({"name", "count", "devices", "activations"});
    PlacementServer server{.name = one.Has("name") ? one.At("name").String()
                                                   : fmt::format("server {}", i)};
    const JsonValue devices = one.At("devices");
    if (!devices.IsArray()) devices.Fail("an array of devices");
    for (std::size_t d = 0; d < devices.size(); ++d) {
      const JsonValue device = devices.At(d);
      device.AllowOnly({"count", "memory", "speed", "load_bytes_per_s"});
      const std::uint64_t count = device.Has("count") ? device.At("count").Count(1, 4096) : 1;
      server.devices.insert(
          server.devices.end(), count,
          PlacementDevice{.memory = device.At("memory").Size().count(),
                          .speed = device.NumberOr("speed", 1),
                          .load_bytes_per_second = device.At("load_bytes_per_s").Number()});
    }
    const std::uint64_t count = one.Has("count") ? one.At("count").Count(1, kMostServers) : 1;
    if ((problem.servers.size() + count) * problem.experts.size() > kMostCells) {
      one.Fail(fmt::format("at most {} servers times experts", kMostCells));
    }
    all_devices += count * server.devices.size();
    if (all_devices > kMostDevices) one.Fail(fmt::format("at most {} devices", kMostDevices));
    for (std::uint64_t copy = 0; copy < count; ++copy) {
      problem.servers.push_back(server);
      if (count > 1) problem.servers.back().name = fmt::format("{} {}", server.name, copy);
    }
  }
}

std::uint32_t ReadServerName(const JsonValue& json, const PlacementProblem& problem) {
  if (!json.IsString()) {
    return static_cast<std::uint32_t>(json.Count(0, problem.server_count() - 1));
  }
  for (std::uint32_t n = 0; n < problem.server_count(); ++n) {
    if (problem.servers[n].name == json.String()) return n;
  }
  json.Fail("the name of a server");
}

LinkTable ReadLinks(const JsonValue& json, const PlacementProblem& problem) {
  json.AllowOnly({"latency_s", "bytes_per_s", "pairs", "sharing"});
  LinkTable links{.usual = ReadLink(json)};
  if (!json.Has("pairs")) return links;
  const JsonValue pairs = json.At("pairs");
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    const JsonValue pair = pairs.At(i);
    pair.AllowOnly({"from", "to", "latency_s", "bytes_per_s"});
    links
        .pairs[{ReadServerName(pair.At("from"), problem), ReadServerName(pair.At("to"), problem)}] =
        ReadLink(pair);
  }
  return links;
}

Result<PlacementProblem> ParseProblem(const std::string& name, std::string_view text) {
  TROUPE_ASSIGN_OR_RETURN(
      PlacementProblem problem, ReadJson<PlacementProblem>(name, text, [](const JsonValue& json) {
        json.AllowOnly({"format", "version", "model", "servers", "links"});
        ExpectFormat(json, kProblemFormat);
        PlacementProblem read;
        ReadModel(json.At("model"), read);
        const JsonValue servers = json.At("servers");
        ReadServers(servers, read);
        std::size_t n = 0;
        for (std::size_t i = 0; i < servers.size(); ++i) {
          const JsonValue one = servers.At(i);
          const std::uint64_t count = one.Has("count") ? one.At("count").Count(1, kMostServers) : 1;
          for (std::uint64_t copy = 0; copy < count; ++copy, ++n) {
            ReadActivations(one.At("activations"), read, read.servers[n]);
          }
        }
        read.links = ReadLinks(json.At("links"), read);
        return read;
      }));
  if (Status valid = Validate(problem); !valid.ok()) return std::move(valid).WithContext(name);
  return problem;
}

Json ToJson(const PlacementProblem& problem) {
  Json sizes = Json::Array(), servers = Json::Array();
  for (std::uint32_t l = 0; l < problem.experts.layers(); ++l) {
    Json layer = Json::Array();
    for (std::uint32_t i = 0; i < problem.experts.CountIn(l); ++i) {
      layer.push_back(problem.experts.BytesOf(problem.experts.FirstOf(l) + i));
    }
    sizes.push_back(std::move(layer));
  }
  for (std::uint32_t n = 0; n < problem.server_count(); ++n) {
    const PlacementServer& server = problem.servers[n];
    Json devices = Json::Array(), activations = Json::Array();
    for (const PlacementDevice& device : server.devices) {
      devices.push_back({{"memory", device.memory},
                         {"speed", device.speed},
                         {"load_bytes_per_s", device.load_bytes_per_second}});
    }
    for (std::uint32_t l = 0; l < problem.experts.layers(); ++l) {
      const auto f = problem.Activations(n, l);
      activations.push_back(std::vector<double>(f.begin(), f.end()));
    }
    servers.push_back({{"name", server.name},
                       {"devices", std::move(devices)},
                       {"activations", std::move(activations)}});
  }
  Json links = ToJson(problem.links.usual);
  if (!problem.links.pairs.empty()) links["pairs"] = Json::Array();
  for (const auto& [pair, link] : problem.links.pairs) {
    Json one = {{"from", pair.first}, {"to", pair.second}};
    one.Update(ToJson(link));
    links["pairs"].push_back(std::move(one));
  }
  return {{"format", kProblemFormat},
          {"version", 1},
          {"model",
           {{"layers", problem.experts.layers()},
            {"experts_per_token", problem.experts_per_token},
            {"expert_bytes", std::move(sizes)}}},
          {"servers", std::move(servers)},
          {"links", std::move(links)}};
}

Result<Placement> ParsePlacement(const std::string& name, std::string_view text,
                                 const PlacementProblem& problem) {
  TROUPE_ASSIGN_OR_RETURN(
      Placement placement, ReadJson<Placement>(name, text, [&](const JsonValue& json) {
        ExpectFormat(json, kPlacementFormat);
        Placement read;
        const JsonValue servers = json.At("servers");
        for (std::size_t n = 0; n < servers.size(); ++n) {
          const JsonValue devices = servers.At(n).At("devices");
          read.experts.emplace_back();
          for (std::size_t d = 0; d < devices.size(); ++d) {
            const JsonValue layers = devices.At(d);
            std::vector<ExpertIndex> held;
            if (layers.size() != problem.experts.layers()) {
              layers.Fail(fmt::format("an array of {} layers", problem.experts.layers()));
            }
            for (std::uint32_t l = 0; l < problem.experts.layers(); ++l) {
              const JsonValue layer = layers.At(l);
              for (std::size_t i = 0; i < layer.size(); ++i) {
                held.push_back(
                    problem.experts.FirstOf(l) +
                    static_cast<ExpertIndex>(layer.At(i).Count(0, problem.experts.CountIn(l) - 1)));
              }
            }
            read.experts.back().push_back(std::move(held));
          }
        }
        return read;
      }));
  if (Status valid = Validate(placement, problem); !valid.ok()) {
    return std::move(valid).WithContext(name);
  }
  return placement;
}

Json ToJson(const PlacementProblem& problem, const Placement& placement) {
  Json servers = Json::Array();
  for (std::uint32_t n = 0; n < problem.server_count(); ++n) {
    Json devices = Json::Array();
    for (const auto& device : placement.experts[n]) {
      std::vector<std::vector<std::uint32_t>> layers(problem.experts.layers());
      for (const ExpertIndex e : device) {
        const ExpertId id = problem.experts.Id(e);
        layers[id.layer].push_back(id.expert);
      }
      devices.push_back(layers);
    }
    servers.push_back({{"name", problem.servers[n].name}, {"devices", std::move(devices)}});
  }
  return {{"format", kPlacementFormat}, {"version", 1}, {"servers", std::move(servers)}};
}

}  // namespace troupe
