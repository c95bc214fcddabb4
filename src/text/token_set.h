// A set of tokens of one vocabulary: a bit for each.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/check.h"
#include "text/vocab.h"

namespace troupe {

class TokenSet {
 public:
  explicit TokenSet(std::size_t vocabulary = 0)
      : vocabulary_(vocabulary), words_((vocabulary + 63) / 64) {}

  std::size_t vocabulary() const { return vocabulary_; }

  // Whatever the id: false outside the vocabulary.
  bool Has(TokenId id) const {
    const auto at = static_cast<std::size_t>(id);
    return id >= 0 && at < vocabulary_ && (words_[at / 64] >> (at % 64) & 1) != 0;
  }
  void Insert(TokenId id) {
    const auto at = static_cast<std::size_t>(id);
    TROUPE_DCHECK(id >= 0 && at < vocabulary_);
    words_[at / 64] |= std::uint64_t{1} << (at % 64);
  }
  void InsertAll(const TokenSet& other) {
    TROUPE_CHECK(other.vocabulary_ == vocabulary_);
    for (std::size_t i = 0; i < words_.size(); ++i) words_[i] |= other.words_[i];
  }
  void RemoveAll(const TokenSet& other) {
    TROUPE_CHECK(other.vocabulary_ == vocabulary_);
    for (std::size_t i = 0; i < words_.size(); ++i) words_[i] &= ~other.words_[i];
  }
  std::size_t Count() const {
    std::size_t count = 0;
    for (const std::uint64_t word : words_) count += static_cast<std::size_t>(std::popcount(word));
    return count;
  }
  std::size_t bytes() const { return words_.size() * sizeof(std::uint64_t); }

  bool operator==(const TokenSet&) const = default;

 private:
  std::size_t vocabulary_;
  std::vector<std::uint64_t> words_;
};

}  // namespace troupe
