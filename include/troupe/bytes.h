// A count of bytes that cannot be mixed with other counts, its literals (6_GiB), and its text form
// as people write it on the command line: 512MiB, 6GiB, 6G (G alone is GiB), 1.5GiB, 4096.
#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <string_view>

#include "troupe/status.h"

namespace troupe {

class Bytes {
 public:
  constexpr Bytes() = default;
  constexpr explicit Bytes(std::uint64_t count) : count_(count) {}

  constexpr std::uint64_t count() const { return count_; }

  constexpr auto operator<=>(const Bytes&) const = default;
  constexpr Bytes& operator+=(Bytes other) {
    count_ += other.count_;
    return *this;
  }
  constexpr Bytes& operator-=(Bytes other) {
    if (other.count_ > count_) internal::CheckFailed(__FILE__, __LINE__, "bytes below zero");
    count_ -= other.count_;
    return *this;
  }
  friend constexpr Bytes operator+(Bytes a, Bytes b) { return a += b; }
  friend constexpr Bytes operator-(Bytes a, Bytes b) { return a -= b; }
  friend constexpr Bytes operator*(Bytes a, std::uint64_t n) { return Bytes(a.count_ * n); }
  friend constexpr Bytes operator*(std::uint64_t n, Bytes a) { return a * n; }
  friend constexpr std::uint64_t operator/(Bytes a, Bytes b) { return a.count_ / b.count_; }

 private:
  std::uint64_t count_ = 0;
};

// 6_GiB in a program that says `using namespace troupe::literals;`.
inline namespace literals {
constexpr Bytes operator""_B(unsigned long long n) { return Bytes(n); }
constexpr Bytes operator""_KiB(unsigned long long n) { return Bytes(n << 10); }
constexpr Bytes operator""_MiB(unsigned long long n) { return Bytes(n << 20); }
constexpr Bytes operator""_GiB(unsigned long long n) { return Bytes(n << 30); }
}  // namespace literals

// "976.2 MiB": one decimal, the unit in which the number is below 1024.
std::string ToString(Bytes bytes);

Result<Bytes> ParseBytes(std::string_view text);

}  // namespace troupe
