#include "fake_cuda/programs.h"

#include <map>

namespace troupe {
namespace {

using Kernels = std::map<std::pair<std::string_view, std::string_view>, FakeKernel>;

Kernels& AllKernels() {
  static Kernels kernels;
  return kernels;
}

}  // namespace

FakeProgram::FakeProgram(std::string_view name,
                         std::vector<std::pair<std::string_view, FakeKernel>> kernels) {
  for (auto& [kernel, what] : kernels) {
    what.name = kernel;
    AllKernels()[{name, kernel}] = std::move(what);
  }
}

const FakeKernel* FindFakeKernel(std::string_view program, std::string_view kernel) {
  const auto found = AllKernels().find({program, kernel});
  return found == AllKernels().end() ? nullptr : &found->second;
}

}  // namespace troupe
