#include "split/cut_toy_for_test.h"

#include <algorithm>
#include <cstring>

#include "runtime/fake_runner_for_test.h"
#include "runtime/part_keys.h"
#include "split/codec/keys_frame.h"
#include "testing/test_seed.h"
#include "text/tiny_vocab_for_test.h"

namespace troupe {
namespace {

constexpr std::size_t kToyRoom = 300;

std::vector<TokenId> TokensOf(const Request& request) {
  std::vector<TokenId> tokens = std::get<std::vector<TokenId>>(request.prompt);
  tokens.insert(tokens.end(), request.begun.begin(), request.begun.end());
  return tokens;
}

// What the lower layers make of a text.
std::vector<float> ToyRows(std::span<const TokenId> tokens, std::uint64_t seed = 7) {
  std::vector<float> rows;
  std::uint64_t hash = seed;
  for (const TokenId token : tokens) {
    hash = (hash ^ static_cast<std::uint64_t>(token)) * 0x9e3779b97f4a7c15;
    for (std::uint32_t i = 0; i < kToyWidth; ++i) {
      rows.push_back(static_cast<float>((hash >> (8 * i)) & 0xffff));
    }
  }
  return rows;
}

std::string ToyKeys(std::span<const TokenId> tokens, std::uint32_t layer, std::size_t first,
                    std::size_t positions) {
  const std::vector<float> all = ToyRows(tokens, 100 + layer);
  const std::span<const float> some =
      std::span(all).subspan(first * kToyWidth, positions * kToyWidth);
  return {reinterpret_cast<const char*>(some.data()), some.size_bytes()};
}

std::shared_ptr<const CutBasis> ToyBasis(std::uint32_t layer) {
  return std::make_shared<const CutBasis>(PlainBasis(layer, kToyWidth));
}

TextGeneration TextFor(const Tokenizer& tokenizer, const Clock& clock, const Request& request) {
  return TextGeneration::Make(tokenizer, std::get<std::vector<TokenId>>(request.prompt),
                              {.max_tokens = request.max_tokens,
                               .sampler = request.sampling,
                               .begun = request.begun},
                              {.capacity = kToyRoom}, clock)
      .value();
}

}  // namespace

Answer ToyAnswer(const Tokenizer& tokenizer, const Clock& clock, const Request& request) {
  TextGeneration text = TextFor(tokenizer, clock, request);
  static const FakeRunner kToy({.vocabulary = 256});
  SamplerScratch scratch;
  std::vector<TokenId> fed(text.prompt().begin(), text.prompt().end());
  text.Read(text.prompt_left());
  while (!text.ended()) {
    for (const TokenId token : text.NextTokens(1)) fed.push_back(token);
    EXPECT_TRUE(text.Accept(kToy.LogitsAfter(fed), scratch).ok());
  }
  return std::move(text).TakeAnswer();
}

// Whole answers, at the end and, over the link, in the cloud.
class CutToy::WholeSource final : public TokenSource {
 public:
  WholeSource(CutToy& world, bool is_far) : world_(world), is_far_(is_far) {}
  Stop Start(const RunAsk& ask, RunEvents events) override {
    const auto over = std::make_shared<bool>(false);
    world_.After(20 * kToyTick,
                 [this, ask, events, over] { world_.Say(ask, events, over, is_far_); });
    return [over] { *over = true; };
  }

 private:
  CutToy& world_;
  const bool is_far_;
};

CutToy::CutToy(const Tokenizer& tokenizer, std::uint64_t seed, bool faults)
    : tokenizer_(tokenizer),
      rng_(seed),
      faults_(faults),
      own_(std::make_unique<WholeSource>(*this, /*is_far=*/false)),
      cloud_(std::make_unique<WholeSource>(*this, /*is_far=*/true)) {}

CutToy::~CutToy() = default;

TokenSource& CutToy::SourceIn(Side place) { return place == Side::kEnd ? *own_ : *cloud_; }

PlaceChoice CutToy::Choose(const AnswerTask& task) {
  PlaceChoice choice{.place = Side::kCloud, .why = "cut"};
  const std::size_t prefix = WholeTilesBefore(task.read), tiles = (chunk_ + 15) / 16;
  if (task.one_token) choice.cut = CutPlan{.layer = kToyCut, .chunk = chunk_};
  if (!task.one_token && prefix > 0) {
    choice.cut = CutPlan{.layer = kToyCut, .chunk = tiles * 16, .prefix = prefix};
  }
  return choice;
}

FlowLimits CutToy::limits() const {
  return {.silence = 60 * kToyTick,
          .least_stall = least_stall_,
          .first_again = 20 * kToyTick,
          .patience = 4};
}

TokenSource::Stop CutToy::StartCut(const RunAsk& ask, bool exact, const CutPlan& plan,
                                   RunEvents events) {
  EXPECT_TRUE(exact);
  const auto run = CutRun::Start(*this,
                                 {.request = ask.request,
                                  .exact = exact,
                                  .plan = plan,
                                  .name = ++name_,
                                  .far_at_once = far_at_once_},
                                 std::move(events))
                       .value();
  runs_.push_back(run);
  return [run] { run->Stop(); };
}

Result<CutWorld::RunLower> CutToy::OpenLower(std::uint32_t layer, std::size_t tokens, bool keys) {
  auto read = std::make_shared<std::vector<TokenId>>();
  return RunLower([this, read, layer, tokens, keys](std::vector<TokenId> some, OnLower on_lower) {
    const std::size_t first = read->size();
    read->insert(read->end(), some.begin(), some.end());
    EXPECT_LE(read->size(), tokens);
    const std::vector<float> all = ToyRows(*read);
    Lower lower;
    lower.rows.assign(all.end() - static_cast<std::ptrdiff_t>(some.size() * kToyWidth), all.end());
    for (std::uint32_t of = 0; keys && of < layer; ++of) {
      for (std::size_t at = first; at < read->size(); at += most_positions_) {
        const std::size_t positions = std::min(most_positions_, read->size() - at);
        const std::string bytes = ToyKeys(*read, of, at, positions);
        lower.keys.push_back(EncodeKeys({.type = KvType::kF16,
                                         .first_layer = of,
                                         .layers = 1,
                                         .first = static_cast<std::uint32_t>(at),
                                         .positions = static_cast<std::uint32_t>(positions)},
                                        std::as_bytes(std::span(bytes))));
      }
    }
    lower.seconds = 1e-9 * static_cast<double>(chunk_takes_);
    end_free_ = std::max(end_free_, Now()) + chunk_takes_;
    lower.ended = end_free_;
    lower.status = end_fails_;
    if (faults_ && rng_.Below(60) == 0) lower.status = DataLoss("an expert cannot be read");
    At(end_free_, [lower, on_lower = std::move(on_lower)] { on_lower(lower); });
  });
}

Result<StateEncoder> CutToy::EncoderFor(const CutPlan& plan, bool) {
  return StateEncoder::Create(ToyBasis(plan.layer), {});
}

std::uint64_t CutToy::BasisOf(std::uint32_t layer, const StateCode& code) const {
  return DigestOf(*ToyBasis(layer), code);
}

TokenSource::Stop CutToy::StartFar(const RunAsk& ask, RunEvents events) {
  std::vector<TokenId> tokens = TokensOf(ask.request);
  if (ask.cut->prefix > 0) tokens.resize(ask.cut->prefix);
  auto far = std::make_shared<Far>(
      Far{.ask = ask,
          .events = std::move(events),
          .tokens = std::move(tokens),
          .decoder = StateDecoder::Create(ToyBasis(ask.cut->layer), ask.cut->code).value()});
  fars_[ask.cut->name] = far;
  far_began_ = Now();
  After(2 * half_trip_, [this, far] { Tell(*far, [&] { far->events.on_ready(); }); });
  return [far] { far->over = true; };
}

TokenSource::Stop CutToy::SendStates(std::uint64_t name, std::span<const std::byte> message,
                                     OnReceipt wanted) {
  const auto stopped = std::make_shared<bool>(false);
  const auto on_receipt = [wanted, stopped](const Result<StatesReceipt>& receipt) {
    if (!*stopped) wanted(receipt);
  };
  const std::vector<std::byte> bytes(message.begin(), message.end());
  const int copies = faults_ && rng_.Below(8) == 0 ? 2 : 1;
  for (int copy = 0; copy < copies; ++copy) {
    const Nanos jitter = faults_ ? kToyTick * static_cast<Nanos>(rng_.Below(15)) : 0;
    link_free_ = std::max(link_free_, Now()) + on_link_;
    At(link_free_ + half_trip_ + jitter, [this, name, bytes, on_receipt, copy] {
      Arrive(name, bytes, copy == 0 ? OnReceipt(on_receipt) : OnReceipt());
    });
  }
  return [this, stopped] {
    *stopped = true;
    ++stopped_;
  };
}

void CutToy::Step() {
  clock_.Advance(kToyTick);
  if (faults_ && rng_.Below(60) == 0) link_ = static_cast<Link>(rng_.Below(3));
  usable_ = link_ == Link::kUp || (faults_ && rng_.Below(5) == 0);
  for (bool any = true; any;) {
    any = false;
    for (auto event = events_.begin(); event != events_.end(); ++event) {
      if (event->first > Now()) continue;
      const auto call = std::move(event->second);
      events_.erase(event);
      call();
      any = true;
      break;
    }
  }
  for (const auto& weak : std::vector(runs_)) {
    if (const auto run = weak.lock()) run->OnTime();
  }
  for (const auto& [name, far] : std::map(fars_)) {
    if (link_ == Link::kCut && !far->over) {
      far->over = true;
      far->events.on_failure(Error(Code::kUnavailable, "cut"));
    } else if (link_ == Link::kUp && !far->over) {
      far->events.on_heard();
    }
  }
  std::erase_if(fars_, [](const auto& of) { return of.second->over; });
}

// What it tells: rows that go through layers.
std::size_t CutToy::Store(Far& far, const std::vector<std::byte>& bytes) {
  if (!IsKeysMessage(bytes)) {
    StateDecoder::States states = far.decoder.Decode(bytes).value();
    const std::size_t rows = states.rows.size() / kToyWidth;
    far.rows[states.first] = std::move(states.rows);
    return rows;
  }
  const KeysFrame frame = ReadKeysFrame(bytes).value();
  const std::span<const std::byte> keys = KeysOf(bytes);
  far.keys[{frame.first_layer, frame.first}] = {reinterpret_cast<const char*>(keys.data()),
                                                keys.size()};
  return 0;
}

bool CutToy::RefusesAsFirst(const std::vector<std::byte>& bytes) {
  if (!refuses_first_) return false;
  if (first_.empty()) {
    first_ = bytes;
    return true;
  }
  first_came_ |= bytes == first_;
  if (!first_came_) ++overtook_;
  return false;
}

void CutToy::Arrive(std::uint64_t name, const std::vector<std::byte>& bytes,
                    const OnReceipt& on_receipt) {
  if (link_ == Link::kHangs) return;
  const auto found = fars_.find(name);
  if (link_ == Link::kCut || found == fars_.end()) {
    if (on_receipt) on_receipt(Error(Code::kUnavailable, "cut"));
    return;
  }
  const std::shared_ptr<Far> far = found->second;
  if (RefusesAsFirst(bytes) || Now() < no_room_until_ || (faults_ && rng_.Below(12) == 0)) {
    ++refused_;
    return After(half_trip_, [on_receipt] {
      if (!on_receipt) return;
      on_receipt(Error(Code::kResourceExhausted, "no room").WithRetryAfter(0.05));
    });
  }
  const std::size_t rows = Store(*far, bytes);
  const Nanos takes = rows > 0 ? cloud_takes_ : 0;
  if (rows > 0) cloud_free_ = std::max(cloud_free_, Now()) + takes;
  const Nanos done = rows > 0 ? cloud_free_ : Now();
  const double seconds = 1e-9 * static_cast<double>(takes);
  const double waited = 1e-9 * static_cast<double>(done - Now()) - seconds;
  At(done + half_trip_, [this, far, rows, on_receipt, seconds, waited] {
    if (on_receipt && link_ != Link::kHangs) {
      on_receipt(StatesReceipt{.rows = rows, .waited_seconds = waited, .seconds = seconds});
    }
    Tell(*far, [&] { MaybeChoose(far); });
  });
}

void CutToy::MaybeChoose(const std::shared_ptr<Far>& far) {
  std::vector<float> all;
  for (const auto& [first, rows] : far->rows) {
    if (first * kToyWidth == all.size()) all.insert(all.end(), rows.begin(), rows.end());
  }
  if (all.size() < far->tokens.size() * kToyWidth) return;
  const CutAsk& cut = *far->ask.cut;
  for (std::uint32_t layer = 0; cut.prefix > 0 && layer < cut.layer; ++layer) {
    std::string keys;
    for (const auto& [at, bytes] : far->keys) {
      if (at.first == layer) keys += bytes;
    }
    const std::string whole = ToyKeys(far->tokens, layer, 0, cut.prefix);
    if (keys.size() < whole.size()) return;
    EXPECT_EQ(keys, whole) << "keys that are not those of the prompt";
  }
  EXPECT_EQ(all, ToyRows(far->tokens)) << "rows that are not those of the prompt";
  if (std::exchange(far->chooses, true)) return;
  Say(far->ask, far->events, std::shared_ptr<bool>(far, &far->over), /*is_far=*/true);
}

void CutToy::Say(const RunAsk& ask, const RunEvents& events, std::shared_ptr<bool> over,
                 bool is_far) {
  const Answer answer = ToyAnswer(tokenizer_, clock_, ask.request);
  const std::span<const TokenId> tokens =
      std::span(answer.tokens).subspan(ask.request.begun.size());
  auto told = std::make_shared<Told>(Told{.tokens = {tokens.begin(), tokens.end()},
                                          .reason = answer.finish,
                                          .events = events,
                                          .over = std::move(over),
                                          .is_far = is_far});
  At(Now(), [this, told = std::move(told)] { TellNext(told); });
}

// A link that hangs loses nothing: it comes later, and in order.
void CutToy::TellNext(const std::shared_ptr<Told>& told) {
  if (*told->over) return;
  if (told->is_far && link_ == Link::kHangs) {
    return After(kToyTick, [this, told] { TellNext(told); });
  }
  if (told->is_far && link_ == Link::kCut) {
    *told->over = true;
    return told->events.on_failure(Error(Code::kUnavailable, "cut"));
  }
  if (told->next == told->tokens.size()) {
    *told->over = true;
    return told->events.on_end(told->reason, {});
  }
  After(2 * kToyTick, [this, told] { TellNext(told); });
  told->events.on_tokens({&told->tokens[told->next++], 1});
}

CutToyTest::CutToyTest() : tokenizer_(MakeTokenizer(TinyByteLevelVocab()).value()) {}
CutToyTest::~CutToyTest() = default;

Request CutToyTest::Asked(Rng& rng, std::size_t tokens, std::size_t most_prompt) const {
  std::vector<TokenId> prompt(2 + rng.Below(most_prompt));
  for (TokenId& token : prompt) token = static_cast<TokenId>(rng.Below(256));
  Request request{.prompt = prompt};
  request.sampling.seed = rng.Next();
  for (std::uint64_t begun = rng.Below(3); begun > 0; --begun) {
    request.begun.push_back(static_cast<TokenId>(rng.Below(256)));
  }
  request.max_tokens = request.begun.size() + tokens;
  return request;
}

CutToyTest::Schedules CutToyTest::RunSchedules(int schedules, std::size_t most_tokens,
                                               std::size_t most_prompt) {
  Rng rng(TestSeed());
  Schedules seen;
  for (int schedule = 0; schedule < schedules && !HasFailure(); ++schedule) {
    const Request request = Asked(rng, 1 + rng.Below(most_tokens), most_prompt);
    CutToy world(*tokenizer_, rng.Next(), /*faults=*/true);
    world.chunk_ = 1 + rng.Below(40);
    const Answer alone = ToyAnswer(*tokenizer_, world.clock(), request);
    const Answer got = Run(world, request).first;
    EXPECT_EQ(got.tokens, alone.tokens) << "schedule " << schedule;
    EXPECT_EQ(got.finish, alone.finish) << "schedule " << schedule;
    EXPECT_EQ(world.counts().begun, world.cut_ok() + world.cut_not()) << "each is over once";
    seen.cut += world.cut_ok();
    seen.went_on += world.counts().went_on;
    seen.otherwise += world.cut_not();
  }
  return seen;
}

std::pair<Answer, Nanos> CutToyTest::Run(CutToy& world, const Request& request) const {
  const auto ticket = std::make_shared<Ticket>(1);
  const auto answer = std::make_shared<SplitAnswer>(
      world, SplitAnswer::Parts{.request = request,
                                .crosses_exactly = true,
                                .text = TextFor(*tokenizer_, world.clock(), request),
                                .ticket = ticket,
                                .gate = nullptr});
  answer->Begin();
  for (int step = 0; !answer->over(); ++step) {
    if (step > 100'000) {
      ADD_FAILURE() << "an answer that never ends";
      break;
    }
    world.Step();
    if (step % 5 == 0) answer->OnTime();
  }
  const Nanos took = world.Now();
  for (int step = 0; step < 50; ++step) world.Step();  // what is still on its way
  return {ticket->Wait().value(), took};
}

}  // namespace troupe
