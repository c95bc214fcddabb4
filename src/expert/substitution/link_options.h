// The options of one link of a written chain, "name:key=value:key=value": read key by key, each one
// that nobody asked for an error that names those that there are.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace troupe {

class LinkOptions {
 public:
  // `kind`: what the link is one of, in errors.
  static Result<LinkOptions> Read(std::string_view link, std::string_view kind = "substitution");

  const std::string& name() const { return name_; }

  // The value of a key, or what is usual; the first fault is kept for Finish.
  double Number(std::string_view key, double usual, double least, double most);
  std::uint32_t Whole(std::string_view key, std::uint32_t usual, std::uint32_t least,
                      std::uint32_t most);
  std::uint32_t WholeOrAll(std::string_view key, std::uint32_t usual);  // "all": no limit
  bool Flag(std::string_view key, bool usual);                          // 0 or 1
  bool Is(std::string_view key, std::string_view word);                 // and takes it if so

  bool Has(std::string_view key) const;

  Status Finish() const;

 private:
  struct Option {
    std::string key, value;
    bool taken = false;
  };
  Option* Take(std::string_view key);
  void Fault(const Option& option, std::string_view expected);

  std::string kind_, name_;
  std::vector<Option> options_;
  std::vector<std::string> known_;
  Status status_;
};

}  // namespace troupe
