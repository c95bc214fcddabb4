#include "troupe/eval_tasks.h"

#include <fmt/core.h>

#include <cstdio>
#include <filesystem>
#include <optional>

#include "lab/lossy_switch.h"
#include "lab/task_score.h"
#include "troupe/counted.h"
#include "troupe/eval_report.h"
#include "troupe/json_record.h"
#include "troupe/options.h"
#include "troupe/progress.h"
#include "troupe/run_record.h"

namespace troupe {
namespace {

struct ScoredTask {
  std::string name;
  TaskFile file;
  TaskScore score;
  std::optional<TaskScore> exact;  // of the same questions, where asked for
};

// From all over the file: neighbours are often of one kind.
void Thin(TaskFile& file, std::size_t items) {
  if (items == 0 || file.items.size() <= items) return;
  std::vector<TaskItem> kept;
  for (std::size_t i = 0; i < items; ++i) kept.push_back(file.items[i * file.items.size() / items]);
  file.items = std::move(kept);
}

void Append(TaskScore& sum, const TaskScore& part) {
  sum.items.insert(sum.items.end(), part.items.begin(), part.items.end());
  sum.right += part.right;
  sum.right_by_byte += part.right_by_byte;
  sum.cut += part.cut;
  sum.tokens_fed += part.tokens_fed;
  sum.tokens_scored += part.tokens_scored;
}

ScoredTask Sum(const std::vector<ScoredTask>& tasks) {
  ScoredTask all{.name = "all"};
  for (const ScoredTask& task : tasks) {
    Append(all.score, task.score);
    if (!task.exact) continue;
    if (!all.exact) all.exact.emplace();
    Append(*all.exact, *task.exact);
  }
  return all;
}

std::string Percent(const Interval& share, const char* sign = "") {
  return fmt::format(fmt::runtime(fmt::format("{{:{0}.1f}} % ({{:{0}.1f}} to {{:{0}.1f}})", sign)),
                     100 * share.mean, 100 * share.least, 100 * share.most);
}

void Print(const ScoredTask& task) {
  fmt::print("{:<38} {:>6}  {:<26} {:<26}\n", task.name, task.score.items.size(),
             Percent(task.score.accuracy()), Percent(task.score.accuracy_by_byte()));
  if (!task.exact) return;
  fmt::print("{:<38} {:>6}  {:<26} {:<26}\n", "  exact", "", Percent(task.exact->accuracy()),
             Percent(task.exact->accuracy_by_byte()));
  fmt::print("{:<38} {:>6}  {:<26} {:<26}\n", "  change", "",
             Percent(AccuracyDifference(*task.exact, task.score, false), "+"),
             Percent(AccuracyDifference(*task.exact, task.score, true), "+"));
}

void Print(const std::vector<ScoredTask>& tasks, const ScoredTask& all) {
  fmt::print("{:.1f} % of {} are answered right", 100 * all.score.accuracy().mean,
             Counted(all.score.items.size(), "question"));
  if (all.exact) fmt::print(" ({:.1f} % by exact answers)", 100 * all.exact->accuracy().mean);
  fmt::print("\n{:<38} {:>6}  {:<26} {:<26}\n", "task", "items", "right (95 times of 100)",
             "right by byte");
  for (const ScoredTask& task : tasks) Print(task);
  if (tasks.size() > 1) Print(all);
  if (all.score.cut > 0) {
    fmt::print("{} longer than the context: their beginning was cut off\n",
               Counted(all.score.cut, "question"));
  }
}

Json ScoreJson(const TaskScore& score) {
  Json json;
  json["items"] = score.items.size();
  json["right"] = score.right;
  AddInterval(json, "accuracy", score.accuracy());
  json["right_by_byte"] = score.right_by_byte;
  AddInterval(json, "accuracy_by_byte", score.accuracy_by_byte());
  json["questions_cut"] = score.cut;
  json["tokens_fed"] = score.tokens_fed;
  json["tokens_scored"] = score.tokens_scored;
  return json;
}

Json AnswersJson(const TaskFile& file, const TaskScore& score) {
  Json answers = Json::Array();
  for (std::size_t i = 0; i < file.items.size(); ++i) {
    const ItemScore& item = score.items[i];
    Json options = Json::Array();
    for (const OptionScore& option : item.options) options.push_back(option.log_likelihood);
    answers.push_back({{"line", file.items[i].line},
                       {"right", item.right},
                       {"right_by_byte", item.right_by_byte},
                       {"log_likelihoods", std::move(options)}});
  }
  return answers;
}

Json TaskJson(const ScoredTask& task) {
  Json json;
  json["task"] = task.name;
  json.Update(ScoreJson(task.score));
  if (task.exact) {
    json["exact"] = ScoreJson(*task.exact);
    AddInterval(json, "accuracy_change", AccuracyDifference(*task.exact, task.score, false));
    AddInterval(json, "accuracy_by_byte_change", AccuracyDifference(*task.exact, task.score, true));
  }
  if (task.file.items.empty()) return json;  // the sum
  json["answers"] = AnswersJson(task.file, task.score);
  if (task.exact) json["exact"]["answers"] = AnswersJson(task.file, *task.exact);
  return json;
}

}  // namespace

void EvalTasks::AddTo(Options& options) {
  options.Heading("Tasks");
  options
      .Add("--tasks", files_,
           "Multiple-choice questions as JSON lines (docs/formats/tasks.md), plain or .zst: count "
           "those whose right answer the model finds most likely")
      .Type("FILE");
  options.Add("--items", items_, "Questions to use of each task file, spread over the file (all)")
      .Between(std::size_t{1}, kMostTokens)
      .Needs("--tasks")
      .Type("N");
  options
      .AddFlag("--against-exact", against_exact_,
               "Also answer the tasks exactly and report the difference: with --substitute or "
               "--low-copy")
      .Needs("--tasks");
}

Status EvalTasks::Run(const EvalFlags& flags) const {
  std::vector<ScoredTask> tasks;
  for (const std::string& path : files_) {
    TROUPE_ASSIGN_OR_RETURN(TaskFile file, ReadTaskFile(path));
    Thin(file, items_);
    tasks.push_back({.name = std::filesystem::path(path).filename().string(),
                     .file = std::move(file),
                     .score = {},
                     .exact = std::nullopt});
  }
  TROUPE_ASSIGN_OR_RETURN(const std::unique_ptr<Engine> engine, flags.Open());
  std::optional<LossySwitch> lossy;
  if (against_exact_) {
    TROUPE_ASSIGN_OR_RETURN(LossySwitch found, LossySwitch::Of(*engine));
    lossy.emplace(std::move(found));
  }
  TROUPE_ASSIGN_OR_RETURN(Session session, Session::Create(*engine));
  TaskOptions options{.together = flags.together()};
  const Vocab& vocab = engine->tokenizer().vocab();
  if (vocab.add_bos) options.begin = vocab.bos;

  const auto score = [&](const ScoredTask& task, const std::string& what) {
    ProgressBar bar(what);
    return ScoreTasks(session, engine->tokenizer(), task.file, options, [&](std::size_t done) {
      bar.UpdateCount(static_cast<double>(done), task.file.items.size());
    });
  };
  ExpertUsage usage;  // without what exact answers took
  for (ScoredTask& task : tasks) {
    const ExpertUsage before = engine->expert_usage();
    TROUPE_ASSIGN_OR_RETURN(task.score, score(task, task.name));
    usage += engine->expert_usage().Since(before);
    if (lossy) {
      lossy->SetExact(true);
      TROUPE_ASSIGN_OR_RETURN(task.exact, score(task, task.name + ", exact"));
      lossy->SetExact(false);
    }
  }
  const ScoredTask all = Sum(tasks);
  if (flags.prints()) Print(tasks, all);
  if (flags.json().empty()) return OkStatus();
  Json record;
  record["model"] = engine->path();
  record["substitution"] = ChainOf(*engine).chain;
  record["together"] = options.together ? Json(*options.together) : Json();
  record["tasks"] = Json::Array();
  for (const ScoredTask& task : tasks) record["tasks"].push_back(TaskJson(task));
  record["all"] = TaskJson(all);
  AddUsage(record, usage);
  return WriteJson(record, flags.json());
}

}  // namespace troupe
