// What an end says of an answer whose prompt is cut between two layers: where, how the rows that
// cross are written, and whether keys and values come with them; and what the cloud says of a
// message of them. Pure. The formats are docs/formats/end-cloud.md's and, of the rows,
// docs/formats/states.md's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/json_value.h"
#include "base/status.h"
#include "split/codec/state_code.h"

namespace troupe {

struct CutAsk {
  std::uint64_t name = 0;   // by which the rows come
  std::uint32_t layer = 0;  // the first one in the cloud
  StateCode code;
  std::uint64_t basis = 0;  // DigestOf what the code uses of the end's basis
  // Tokens that the prompt begins with, whose keys and values of the end's layers come as well: the
  // cloud goes on behind them by itself. 0: all of the prompt, without, for an answer of one token.
  std::size_t prefix = 0;
  // Drawn by the end when it began, and told to nobody else: keys and values that it computes serve
  // what that process asks alone, also where ends share a key to the cloud, or need none.
  std::uint64_t process = 0;

  bool operator==(const CutAsk&) const = default;
};

Json Record(const CutAsk& ask);
CutAsk ReadCutAsk(const JsonValue& json);  // in a reader of JSON (base/json_value.h)

// Of a message of rows that went through the cloud's layers.
struct StatesReceipt {
  std::size_t rows = 0;       // 0: of keys and values
  double waited_seconds = 0;  // for others, and for the rows before
  double seconds = 0;         // in the layers

  bool operator==(const StatesReceipt&) const = default;
};

std::string Encode(const StatesReceipt& receipt);
Result<StatesReceipt> DecodeStatesReceipt(std::string_view text);

}  // namespace troupe
