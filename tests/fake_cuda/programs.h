// The kernels' programs as the processor has them, compiled from the same text as the PTX of the
// same name: which there are, what a kernel takes, and how one is called.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace troupe {

// Added to where a buffer lies, so that the processor cannot read the card's memory by mistake.
inline constexpr std::uint64_t kFakeCardBase = std::uint64_t{1} << 60;

struct FakeParameter {
  std::size_t bytes = 0;
  bool is_pointer = false;
};

struct FakeKernel {
  std::string_view name;
  std::vector<FakeParameter> parameters;
  void (*call)(const std::uint64_t* values) = nullptr;  // for the item under way
};

template <typename T>
T FakeArgument(std::uint64_t value) {
  if constexpr (std::is_pointer_v<T>) {
    return reinterpret_cast<T>(value == 0 ? 0 : value - kFakeCardBase);
  } else {
    return static_cast<T>(value);
  }
}

template <typename Function>
struct FakeCall;
template <typename... T>
struct FakeCall<void (*)(T...)> {
  static std::vector<FakeParameter> Parameters() { return {{sizeof(T), std::is_pointer_v<T>}...}; }
  template <void (*kKernel)(T...)>
  static void Call(const std::uint64_t* values) {
    [values]<std::size_t... kPlaces>(std::index_sequence<kPlaces...>) {
      kKernel(FakeArgument<T>(values[kPlaces])...);
    }
    (std::index_sequence_for<T...>());
  }
};

template <auto kKernel>
FakeKernel KernelOf() {
  using Caller = FakeCall<decltype(kKernel)>;
  return {.parameters = Caller::Parameters(), .call = &Caller::template Call<kKernel>};
}

// Makes kernels known for as long as the library is loaded.
class FakeProgram {
 public:
  FakeProgram(std::string_view name, std::vector<std::pair<std::string_view, FakeKernel>> kernels);
};

// Null where the program has none of that name.
const FakeKernel* FindFakeKernel(std::string_view program, std::string_view kernel);

}  // namespace troupe
