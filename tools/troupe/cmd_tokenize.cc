// `troupe tokenize`: the tokens of a text, or the text of tokens, as a model's vocabulary has them.
// Reads no weight.
#include <fmt/core.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/printable.h"
#include "gguf/reader.h"
#include "runtime/vocab_loader.h"
#include "text/tokenizer.h"
#include "troupe/commands.h"
#include "troupe/counted.h"
#include "troupe/json_record.h"
#include "troupe/options.h"
#include "troupe/text_input.h"

namespace troupe {
namespace {

class TokenizeCommand final : public Command {
 public:
  void AddOptions(Options& options) override {
    AddModelOption(options, "-m,--model,MODEL", model_,
                   "Model whose vocabulary to use (any part of a split model)")
        .Required();
    options.Add("-p,--prompt", text_, "Text to find the tokens of").Type("TEXT");
    options.Add("-f,--file", file_, "Read the text from a file (standard input)").Type("FILE");
    options.Add("--ids", ids_, "Tokens to find the text of, with commas or blanks between: 1,306,…")
        .Type("IDS");
    options.AddFlag("--special", encode_.parse_special,
                    "Names of special tokens in the text mean these tokens");
    options.AddFlag(
        "--no-bos", [this] { encode_.add_special = false; },
        "Leave out the tokens that the model wants around a text");
    options.AddFlag("--count", counts_, "Print the number of tokens alone");
    options.Add("TEXT", argument_, "The same as --prompt").Type("TEXT");
    AddJsonOption(options, json_);
  }

  Status CheckUsage() const override {
    const int given = int{text_.has_value()} + int{!file_.empty()} + int{!ids_.empty()};
    if (given > 1) return InvalidArgument("give one of --prompt, --file and --ids");
    if (given == 1 && argument_) {
      return InvalidArgument("TEXT: '{}' found beside another text, expected one of the two",
                             Printable(*argument_));
    }
    return OkStatus();
  }

  Status Run() override {
    TROUPE_ASSIGN_OR_RETURN(const GgufModel model, GgufModel::Open(model_));
    TROUPE_ASSIGN_OR_RETURN(Vocab vocab, LoadVocab(model.metadata(), model_));
    TROUPE_ASSIGN_OR_RETURN(const std::unique_ptr<Tokenizer> tokenizer,
                            MakeTokenizer(std::move(vocab)));
    TROUPE_ASSIGN_OR_RETURN(const std::vector<TokenId> ids, Ids(*tokenizer));
    TROUPE_ASSIGN_OR_RETURN(const std::string text, tokenizer->Decode(ids));
    if (json_ != "-") Print(*tokenizer, ids, text);
    if (json_.empty()) return OkStatus();
    Json record = {{"model", model_}, {"ids", ids}, {"text", text}, {"tokens", Json::Array()}};
    for (const TokenId id : ids) record["tokens"].push_back(tokenizer->TokenBytes(id));
    return WriteJson(record, json_);
  }

 private:
  Result<std::vector<TokenId>> Ids(const Tokenizer& tokenizer) const {
    if (!ids_.empty()) return ParseTokenIds(ids_);
    if (text_ || argument_) return tokenizer.Encode(text_ ? *text_ : *argument_, encode_);
    const std::string path = file_.empty() ? "-" : file_;
    TROUPE_ASSIGN_OR_RETURN(const std::string text, ReadTextFile(path));
    Result<std::vector<TokenId>> ids = tokenizer.Encode(text, encode_);
    if (!ids.ok()) return Status(ids.status()).WithContext(path);
    return ids;
  }

  void Print(const Tokenizer& tokenizer, const std::vector<TokenId>& ids,
             const std::string& text) const {
    if (counts_) return fmt::print("{}\n", ids.size());
    if (!ids_.empty()) return fmt::print("{}\n", text);
    fmt::print("{}\n", Counted(ids.size(), "token"));
    // In JSON's quotes, so that blanks and control characters are seen.
    for (const TokenId id : ids) {
      fmt::print("{:>8}  {}\n", id, Json(tokenizer.TokenBytes(id)).Dump());
    }
  }

  std::string model_, file_, ids_, json_;
  std::optional<std::string> text_, argument_;
  EncodeOptions encode_;
  bool counts_ = false;
};

}  // namespace

std::unique_ptr<Command> MakeTokenizeCommand() { return std::make_unique<TokenizeCommand>(); }

}  // namespace troupe
