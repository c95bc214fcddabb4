// What was fitted for cuts of a model and what each code of their states was measured to cost
// (docs/formats/cuts.md): a value, its text, and the choice of a code by a limit. Pure; which file
// the text lies in is the caller's to know.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "split/codec/cut_basis.h"
#include "split/codec/state_code.h"

namespace troupe {

// Of a code, on text that nothing was fitted on. The limits are those that the true figure is
// within 95 times of 100.
struct CodePrice {
  StateCode code;
  double error = 0;                // share of the states' squares that is lost
  double kl = 0, kl_most = 0;      // nats a token, of what the whole model predicts to this
  double loss = 0, loss_most = 0;  // of perplexity, as a share; less than 0: a gain
  double same_top = 1;             // share of tokens with the same most likely one
  // Of a code of 8 or 4: what it says, by how often each occurs in its group. Of a row by the
  // entropy coder, in messages of 64 rows. 0: not measured.
  double bits = 0, rans_bytes = 0;

  // Of perplexity: the worse of what it loses on the text and of what mean KL says that it would
  // lose on text of the model's own making, as of MeasuredChain.
  double LossBound() const;
  bool operator==(const CodePrice&) const = default;
};

struct PricedCut {
  CutBasis basis;
  std::string text;                              // that was read
  std::uint64_t fitted_on = 0, measured_on = 0;  // tokens
  std::vector<CodePrice> codes;

  std::size_t RowBytes(const StateCode& code) const {
    return StateRowBytes(code, basis.width, code.exact() ? 0 : basis.kept.size());
  }
  bool operator==(const PricedCut&) const = default;
};

struct CutFile {
  std::string fingerprint;      // of the model
  std::vector<PricedCut> cuts;  // by rising layer

  bool operator==(const CutFile&) const = default;
};

// The code of the fewest bytes a row that loses at most this share of perplexity; the exact one if
// no other does.
StateCode ChooseCode(const PricedCut& cut, double most_loss);

// A code, and how long a row is by it, as measured where an entropy coder makes that.
struct TriedCode {
  StateCode code;
  double row_bytes = 0;

  bool operator==(const TriedCode&) const = default;
};

// Those of which one may be the soonest to cross, of those that lose at most this share and are
// shorter than exact rows: the shortest without directions, which takes hardly any time to write,
// and the shortest of all if that is another one. Each also with the entropy coder behind it, where
// that was measured to spare a tenth of a row: it loses nothing, and takes time.
std::vector<TriedCode> CodesWorthATry(const PricedCut& cut, double most_loss);

// `now`, and of `before` the cuts before other layers if it is of the same model.
CutFile WithCutsOf(const CutFile& before, CutFile now);

std::string EncodeCutFile(const CutFile& file);
// `name` is what errors begin with. Refuses what is of another format or version, and numbers that
// cannot be.
Result<CutFile> DecodeCutFile(const std::string& name, std::string_view text);

}  // namespace troupe
