// A model that is ready to answer: file opened, plan made, weights in memory or within reach,
// tokenizer built, memory for its sequences and their passes at hand. The sequences are sessions
// (session.h), as many as were planned for; rows of several can go through the layers together.
// Threads: one at a time, for the engine and all its sessions.
#pragma once

#include <troupe/state.h>

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/clock.h"
#include "base/status.h"
#include "base/thread_pool.h"
#include "model/config.h"
#include "model/group_router.h"
#include "model/next_token_head.h"
#include "model/transformer.h"
#include "model/weight_loader.h"
#include "model/weights.h"
#include "runtime/card_experts.h"
#include "runtime/chat_prompts.h"
#include "runtime/checked_rows.h"
#include "runtime/engine_plan.h"
#include "runtime/logit_rows.h"
#include "runtime/model_profile.h"
#include "runtime/offloaded_experts.h"
#include "runtime/planned_memory.h"
#include "runtime/sequence_rows.h"
#include "runtime/sequence_slots.h"
#include "runtime/stream_tail.h"
#include "store/model_fingerprint.h"
#include "text/draft/draft_model.h"
#include "text/sampler.h"
#include "text/tokenizer.h"

namespace troupe {

struct PlannedModel;

class Engine {
 public:
  static Result<std::unique_ptr<Engine>> Open(const std::string& path, const EngineOptions& options,
                                              const ByteProgress& progress = {});

  // One pass: the tokens of every entry are appended to its sequence, and logits computed of those
  // that are wanted. At most plan().memory.chunk tokens in all, and a sequence in one entry at
  // most. On an error every sequence is as it was: kResourceExhausted if one is too long for its
  // reservation, kInvalidArgument for an unknown token, or what failed in bringing in experts.
  Status Run(std::span<const SequenceRows> rows);

  // After a Run with drafts: the logits after the first `guesses` guesses of an entry, none for
  // what follows its last sure token. Valid until the next call.
  std::span<const float> LogitsAfterGuesses(std::size_t entry, std::size_t guesses);
  // Guesses that a pass may have in all: none while a trace is recorded, which is of texts. Where
  // sequences have a state, none but behind a single token, and none that were not planned for.
  std::uint32_t MostGuesses() const { return plan_.most_guesses; }
  bool ChecksDrafts() const { return MostGuesses() > 0; }
  // Whether it can guess for itself by the experts that are in memory, without reading any
  // (draft_by_residents.h): where not all are there, where drafts are checked, and where what was
  // drafted can be forgotten token by token.
  bool DraftsByResidents() const {
    return offloaded_ != nullptr && ChecksDrafts() && !config_->HasState();
  }
  // Ends the check, before the next Run: of each entry n of its guesses stay in the sequence,
  // and the others are forgotten, as if they had never been.
  void KeepGuesses(std::span<const std::uint32_t> right);

  // A model that guesses for this one, to be driven between its passes (draft_engine.h); null: none
  // does.
  Engine* draft() { return draft_.get(); }

  // The model's own head as a drafter of a session that has read nothing yet (head_draft.h), if it
  // was opened with one and as many as it was planned for are not in use; the session must outlive
  // it, unless nothing is asked of it any more.
  std::unique_ptr<DraftSequence> DraftByHead(const Session& session);

  const std::string& path() const { return path_; }
  // Of the file that was opened, whatever lies under its path now; absent unless it was asked for.
  const std::optional<ModelFingerprint>& fingerprint() const { return fingerprint_; }
  const ModelConfig& config() const { return *config_; }
  const EnginePlan& plan() const { return plan_; }
  const OffloadOptions& offload_options() const { return offload_options_; }  // as asked for
  const Tokenizer& tokenizer() const { return *tokenizer_; }
  // The format that the model's chat template is in; the error says which it is not.
  const Result<ChatPrompts>& chat() const { return chat_; }

  // For sessions.
  SequenceSlots& sequence_slots() { return slots_; }
  KvPool& kv() { return *kv_; }
  std::span<const float> LogitsOf(SequenceId sequence) const { return logits_.Of(sequence); }
  SamplerScratch& sampler_scratch() { return sampler_scratch_; }
  RequestId NewRequest() { return ++requests_; }  // any thread

  Workspace& workspace() { return *workspace_; }
  Transformer& transformer() { return *transformer_; }
  const Transformer& transformer() const { return *transformer_; }
  // Transformer::set_rows_done, of the pass of any of its sequences. Any thread.
  double rows_done() const { return rows_done_.load(std::memory_order_relaxed); }
  // Some of its layers by themselves, for who cuts the model: with the same weights, experts and
  // threads, between two Runs and for sequences that no other part has.
  Transformer Part(LayerRange layers) {
    return Transformer(*config_, weights(), *experts_, *pool_, layers);
  }
  ThreadPool& pool() { return *pool_; }
  const ModelWeights& weights() const { return weights_.weights(); }
  ExpertUsage expert_usage() const;
  // Who pays for it: see ExpertSource.
  void SettleUsage() { experts_->SettleUsage(); }
  ExpertUsage TakeUsage(RequestId request) { return experts_->TakeUsage(request); }
  ExpertUsage EndRequest(RequestId request) { return experts_->EndRequest(request); }

  // Between passes, an entry for each expert of each layer, whether the layer has any or not.
  std::vector<ExpertPlace> ExpertPlaces();
  // Of experts that are read when they are needed; absent if every one is in memory.
  std::optional<OffloadReport> offload_report() const;
  // Sizes and types, whose tensors are not open any more. Empty for layers without experts.
  const ExpertLayouts& expert_layouts() const { return expert_layouts_; }
  // No answer of the passes to come may differ from what it is with every expert in memory.
  bool exact() const { return (offloaded_ == nullptr || exact_) && !routes_by_groups(); }
  // Of the card whose memory holds experts, too; absent: there is none.
  std::optional<CardReport> card_report() const;
  // What chooses experts in place of the routers; null: nothing was opened that could.
  const GroupRouter* group_router() const { return group_router_ ? &*group_router_ : nullptr; }
  bool routes_by_groups() const { return group_router_.has_value() && by_groups_; }
  // From the next pass on; without effect where nothing else could choose.
  void RouteByGroups(bool by_groups);
  // What may answer in place of an expert that is not in memory, from the next pass on; what the
  // chain counts begins anew. Without effect if every expert is in memory.
  void AnswerBy(SubstitutionChain chain, const LowCopyOptions& low_copies);
  // Experts that everybody finds in memory, on any thread: all of them where all fit.
  HeldExperts& held();
  // Between passes. Where all experts are in memory anyway, this changes only what others find.
  // What is among `fetched` need not be read from the disk.
  Status HoldExperts(std::uint32_t layer, std::span<const std::uint32_t> experts,
                     const FetchedExperts& fetched = {});
  // Where not all are in memory: the same without passes waiting for it, and what came of it (see
  // OffloadedExperts::GoOnHolding).
  void BeginHoldingExperts(std::uint32_t layer, std::span<const std::uint32_t> experts);
  std::optional<Status> GoOnHoldingExperts();
  // Between passes: a step towards a cache of that many slots (OffloadedExperts::UseSlots). Nothing
  // changes where all experts are in memory.
  SlotUse UseExpertSlots(std::uint32_t slots);
  // By which its bytes can be told to be true (ExpertStore::ChecksumOf).
  std::optional<std::uint64_t> ChecksumOf(ExpertId id) const;
  // kNotFound: all are in memory, and nobody needs to ask.
  Status WithExpert(ExpertId id, const std::function<void(const Mlp&)>& use);
  // No: somebody computes with it.
  bool ReleaseExpert(ExpertId id);
  void set_peers(ExpertPeers& peers);
  // Is told of every miss of the passes to come; of where their time goes, until it is null.
  void ObserveMisses(OffloadedExperts::MissObserver observer);
  void WatchTime(PassTimes* times);

  Bytes bytes_touched_per_token() const { return bytes_touched_; }
  double load_seconds() const { return load_seconds_; }

 private:
  struct Opened;
  explicit Engine(Opened opened);
  static Result<std::unique_ptr<Engine>> OpenPlanned(const std::string& path, PlannedModel model,
                                                     const EngineOptions& options,
                                                     const ByteProgress& progress,
                                                     std::shared_ptr<ThreadPool> pool);
  Status OpenExperts(const ExpertLayouts& layouts, std::unique_ptr<ExpertStore> store,
                     LowExperts low, SubstitutionChain substitution, const OffloadOptions& options,
                     std::optional<ModelProfile> profile, std::optional<ScoreTables> score_tables,
                     const ByteProgress& progress);
  Status OpenGate(const LoadedGate& gate);
  Status OpenCard(TestedGpu gpu, const CardOptions& options);
  Status OpenSequences(bool saves_states);
  Status OpenHead(const GgufModel& file, const WeightChecks* checks);
  void ComputeLogits(std::span<const SequenceRows> rows);
  void BeginCheck(std::span<const SequenceRows> rows);
  void ShowStream(std::span<const SequenceRows> rows);
  void KeepTails(std::span<const SequenceRows> rows);
  // Tells the entry's on_row of its rows, of which the first is row `first` of the pass.
  void ShowRows(const SequenceRows& entry, std::uint32_t first);

  std::string path_;
  std::optional<ModelFingerprint> fingerprint_;
  std::unique_ptr<const ModelConfig> config_;  // plan and weights point to it
  EnginePlan plan_;
  PlannedMemory::Share planned_;
  OffloadOptions offload_options_;
  WeightStore weights_;
  std::unique_ptr<Tokenizer> tokenizer_;
  Result<ChatPrompts> chat_;
  std::shared_ptr<ThreadPool> pool_;  // its draft model has the same
  MonotonicClock clock_;
  std::unique_ptr<ExpertSource> experts_;
  OffloadedExperts* offloaded_ = nullptr;  // the same; null if every expert is in memory
  CardExperts* card_ = nullptr;            // in front of them; null: no card
  std::unique_ptr<HeldExperts> all_held_;  // if every expert is in memory, once somebody asked
  bool exact_ = true;                      // what offloaded_ does
  std::optional<GroupRouter> group_router_;
  bool by_groups_ = true;  // it is asked
  ExpertLayouts expert_layouts_;
  std::atomic<double> rows_done_ = 0;
  std::unique_ptr<Transformer> transformer_;
  std::unique_ptr<KvPool> kv_;
  std::optional<Workspace> workspace_;
  SequenceSlots slots_;
  SamplerScratch sampler_scratch_;
  std::atomic<RequestId> requests_{0};
  std::atomic<bool> running_{false};  // to catch a second thread
  std::vector<RowGroup> batch_;       // of Run, kept for their memory
  LogitRows logits_;
  std::vector<std::uint32_t> last_rows_;  // of Run as well
  std::vector<SequenceId> last_of_;
  std::vector<float> evaluated_;  // logits of rows before an entry's last
  CheckedRows checked_;           // of the last pass's drafts
  struct Guessed {
    Session* sequence = nullptr;
    std::uint32_t rows = 0;   // of the pass
    std::uint32_t count = 0;  // of them that are guesses
  };
  std::vector<Guessed> guessed_;  // of the last pass's entries; empty: nothing is to be checked
  std::unique_ptr<Engine> draft_;
  std::unique_ptr<NextTokenHead> head_;  // null: it does not draft
  std::vector<StreamTail> tails_;        // by sequence, where there is a head
  Bytes bytes_touched_;
  double load_seconds_ = 0;
};

}  // namespace troupe
