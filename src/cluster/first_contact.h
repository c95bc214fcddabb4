// Whether a node that does not fit its cluster is the one that is wrong, and so ends with one clear
// line: a newcomer is, that a cluster which stands refuses, or who leads it. A node that has been
// taken in once, or whose plan stands, never ends on account of a stranger. Pure.
#pragma once

#include <cstddef>
#include <set>
#include <string>

namespace troupe {

class FirstContact {
 public:
  // It has a peer, or leads by a plan of its own.
  void Settle() { settled_ = true; }
  bool settled() const { return settled_; }

  // Both, or the other one, found that they do not fit. `counts`: that one leads, or follows a
  // plan.
  bool EndsAt(bool counts) const { return !settled_ && counts; }
  // No link came about for the certificates' sake, so nothing is known of the other but where it
  // is. It leads, or it was the last of `others` that might have taken this node in.
  bool EndsAtCertificate(const std::string& address, bool leads, std::size_t others) {
    distrusted_.insert(address);
    return !settled_ && (leads || distrusted_.size() >= others);
  }

 private:
  bool settled_ = false;
  std::set<std::string> distrusted_;  // addresses
};

}  // namespace troupe
