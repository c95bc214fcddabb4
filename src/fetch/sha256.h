// SHA-256 of bytes that come piece by piece: what hubs and registries publish of their files.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>

namespace troupe {

class Sha256 {
 public:
  Sha256();
  ~Sha256();
  Sha256(Sha256&&) noexcept;
  Sha256& operator=(Sha256&&) noexcept;

  void Add(std::span<const std::byte> bytes);
  // 64 hexadecimal digits, of all so far; ends it.
  std::string Finish();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace troupe
