#include "fake_cuda/items.h"

#include <cstring>

// Keeps what a call must keep on the stack in use, notes its top and goes on on another one.
extern "C" void troupe_switch_stacks(void** from, void* to);
asm(R"(
.pushsection .text
.globl troupe_switch_stacks
.hidden troupe_switch_stacks
.type troupe_switch_stacks, @function
troupe_switch_stacks:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
.size troupe_switch_stacks, .-troupe_switch_stacks
.popsection
)");

namespace troupe {
namespace {

constexpr std::size_t kStackBytes = std::size_t{64} << 10;
constexpr std::size_t kKeptRegisters = 6;

thread_local FakeGroup* group_now = nullptr;

}  // namespace

void FakeGroup::Begin() {
  FakeGroup& group = *group_now;
  (*group.kernel_)();
  Stack& own = group.stacks_[fake_item.number];
  own.over = true;
  troupe_switch_stacks(&own.top, group.own_);
}

void FakeGroup::Wait() {
  troupe_switch_stacks(&group_now->stacks_[fake_item.number].top, group_now->own_);
}

void FakeGroup::GoOn(std::uint32_t item) {
  fake_item.number = item;
  troupe_switch_stacks(&own_, stacks_[item].top);
}

void FakeGroup::Run(std::uint32_t items, bool last_first, const std::function<void()>& kernel) {
  group_now = this;
  kernel_ = &kernel;
  while (stacks_.size() < items) {
    stacks_.push_back({.memory = std::make_unique_for_overwrite<std::byte[]>(kStackBytes)});
  }
  for (std::uint32_t item = 0; item < items; ++item) {
    Stack& stack = stacks_[item];
    stack.over = false;
    // As if Begin had been called: the place to go to above the registers, and 16 bytes aligned.
    const auto end = reinterpret_cast<std::uintptr_t>(stack.memory.get() + kStackBytes);
    auto* const top = reinterpret_cast<std::uintptr_t*>((end & ~std::uintptr_t{15}) - 16);
    top[0] = reinterpret_cast<std::uintptr_t>(&FakeGroup::Begin);
    top[1] = 0;
    stack.top = top - kKeptRegisters;
    std::memset(stack.top, 0, kKeptRegisters * sizeof *top);
  }
  for (bool left = true; left;) {
    left = false;
    for (std::uint32_t i = 0; i < items; ++i) {
      const std::uint32_t item = last_first ? items - 1 - i : i;
      if (stacks_[item].over) continue;
      GoOn(item);
      left = left || !stacks_[item].over;
    }
  }
}

}  // namespace troupe
