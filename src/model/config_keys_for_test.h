// Keys of a small model of a family, for tests of how configurations are read.
#pragma once

#include <string>

#include "model/config.h"

namespace troupe {

inline Metadata CommonKeys(const std::string& arch) {
  Metadata m("m.gguf");
  m.Set("general.architecture", arch);
  m.Set(arch + ".block_count", std::uint32_t{4});
  m.Set(arch + ".embedding_length", std::uint32_t{256});
  m.Set(arch + ".context_length", std::uint32_t{2048});
  m.Set(arch + ".feed_forward_length", std::uint32_t{512});
  m.Set(arch + ".attention.head_count", std::uint32_t{8});
  m.Set(arch + ".attention.head_count_kv", std::uint32_t{2});
  m.Set(arch + ".attention.layer_norm_rms_epsilon", 1e-6f);
  m.Set(arch + ".vocab_size", std::uint32_t{512});
  return m;
}

inline Metadata MoeKeys(const std::string& arch) {
  Metadata m = CommonKeys(arch);
  m.Set(arch + ".expert_count", std::uint32_t{16});
  m.Set(arch + ".expert_used_count", std::uint32_t{4});
  m.Set(arch + ".expert_feed_forward_length", std::uint32_t{128});
  return m;
}

inline std::string ErrorOf(const Metadata& m) {
  const auto config = ReadModelConfig(m);
  return config.ok() ? "no error" : config.status().message();
}

}  // namespace troupe
