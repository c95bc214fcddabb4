#include "troupe/shown_answer.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <optional>
#include <utility>
#include <variant>
#include <vector>

#include "api/model_access.h"
#include "base/clock.h"
#include "base/mutex.h"
#include "base/printable.h"
#include "troupe/interrupt.h"
#include "troupe/progress.h"
#include "troupe/remark.h"

namespace troupe {
namespace {

// A signal wakes nobody who waits for an answer.
constexpr std::chrono::milliseconds kInterruptLooks(20);
constexpr double kLongPass = 1.0;  // seconds: so long nobody waits without being told

// Drawn by whoever waits, and gone before the engine's thread has the first piece printed.
class ReadingBar {
 public:
  explicit ReadingBar(const Prompt& prompt) {
    if (const auto* ids = std::get_if<std::vector<TokenId>>(&prompt)) all_ = ids->size();
  }

  void Note(std::size_t read, std::size_t all) {
    const MutexLock lock(mu_);
    read_ = read;
    all_ = all;
  }
  // `under_way`: rows of the pass that has not been read to its end, by the layers behind them.
  void Draw(double under_way) {
    const MutexLock lock(mu_);
    if (!reading_) return;
    const double now = static_cast<double>(read_) + under_way;
    shown_ = std::max(shown_, std::min(now, static_cast<double>(all_)));  // between two passes, too
    bar_.UpdateCount(shown_, all_);
  }
  void End() {
    const MutexLock lock(mu_);
    if (std::exchange(reading_, false)) bar_.Clear();
  }

 private:
  Mutex mu_;
  ProgressBar bar_ TROUPE_GUARDED_BY(mu_){"reading the prompt"};
  std::size_t read_ TROUPE_GUARDED_BY(mu_) = 0, all_ TROUPE_GUARDED_BY(mu_) = 0;
  double shown_ TROUPE_GUARDED_BY(mu_) = 0;
  bool reading_ TROUPE_GUARDED_BY(mu_) = true;
};

}  // namespace

std::string ShownText(std::string_view text, int descriptor) {
  return ::isatty(descriptor) == 1 ? PrintableText(text) : std::string(text);
}

bool PrintNow(std::string_view text) {
  const std::string shown = ShownText(text, STDOUT_FILENO);
  return std::fwrite(shown.data(), 1, shown.size(), stdout) == shown.size() &&
         std::fflush(stdout) == 0;
}

Result<Answer> AnswerOf(Model& model, Request request, Callbacks callbacks) {
  ReadingBar bar(request.prompt);  // outlives the generation and its callbacks
  callbacks.on_read = [&bar](std::size_t read, std::size_t all) { bar.Note(read, all); };
  callbacks.on_piece = [&bar, show = std::move(callbacks.on_piece)](const Piece& piece) {
    bar.End();
    return !show || show(piece);
  };
  TROUPE_ASSIGN_OR_RETURN(Generation generation,
                          model.Start(std::move(request), std::move(callbacks)));
  const Engine& engine = ModelAccess::EngineOf(model);
  std::optional<Result<Answer>> answer;
  std::optional<Stopwatch> cancelled;
  bool told = false;
  while (!(answer = generation.WaitFor(kInterruptLooks))) {
    bar.Draw(engine.rows_done());
    if (!InterruptGuard::interrupted()) continue;
    if (!cancelled) cancelled.emplace();
    generation.Cancel();
    if (!told && cancelled->Seconds() > kLongPass) {
      told = true;
      bar.End();
      Remark("\nending after the layer that is under way; Ctrl-C again ends at once\n");
    }
  }
  bar.End();
  return *std::move(answer);
}

}  // namespace troupe
