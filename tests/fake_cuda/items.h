// The items of a group one after the other on one thread, each with a stack of its own: an item
// that waits for its group lets the next one go on. Which of them comes first is turned around from
// group to group, so that a kernel that needs one order is wrong in the other.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

namespace troupe {

struct FakeItem {
  std::uint32_t group[2] = {0, 0};
  std::uint32_t number = 0;
};
// The one under way on this thread.
inline thread_local FakeItem fake_item;

class FakeGroup {
 public:
  // `kernel` once for each item.
  void Run(std::uint32_t items, bool last_first, const std::function<void()>& kernel);

  // For the item under way: until all others wait, too, or are over.
  static void Wait();

 private:
  struct Stack {
    std::unique_ptr<std::byte[]> memory;
    void* top = nullptr;  // where it goes on
    bool over = false;
  };

  static void Begin();
  void GoOn(std::uint32_t item);

  std::vector<Stack> stacks_;
  void* own_ = nullptr;  // of who runs the group
  const std::function<void()>* kernel_ = nullptr;
};

}  // namespace troupe
