// Addresses that were dialled in vain, and why: each new reason is to be said once, until there is
// a link. Pure.
#pragma once

#include <cstddef>
#include <map>
#include <set>
#include <string>

namespace troupe {

class UnreachablePeers {
 public:
  // Whether it is news.
  bool Add(const std::string& address, const std::string& why) {
    Entry& entry = entries_[address];
    entry.why = why;
    if (entry.said.size() >= kMostReasons) return false;
    return entry.said.insert(why).second;
  }
  // There is a link, or it is not dialled any more.
  void Forget(const std::string& address) { entries_.erase(address); }

  // By address, the last reason.
  std::map<std::string, std::string> reasons() const {
    std::map<std::string, std::string> reasons;
    for (const auto& [address, entry] : entries_) reasons[address] = entry.why;
    return reasons;
  }

 private:
  static constexpr std::size_t kMostReasons = 8;  // of an address
  struct Entry {
    std::string why;
    std::set<std::string> said;
  };
  std::map<std::string, Entry> entries_;
};

}  // namespace troupe
