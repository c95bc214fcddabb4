#include "split/new_answer.h"

#include <algorithm>
#include <utility>

#include "api/model_access.h"

namespace troupe {

Result<SplitAnswer::Parts> PartsOfAnswer(Model& model, Request request,
                                         std::shared_ptr<CallbackGate> gate, const Clock& clock,
                                         const AnswerTicket& ticket) {
  TROUPE_ASSIGN_OR_RETURN(BatchRequest batch, ModelAccess::Prepare(model, request));
  GenerationSinks sinks;
  if (gate != nullptr) {
    sinks.on_text = [gate](std::string_view text) { return gate->Show(text); };
    sinks.on_read = [gate](std::size_t read, std::size_t all) { return gate->Read(read, all); };
  }
  const ContextRoom room{.capacity = model.plan().context};
  const Engine& engine = ModelAccess::EngineOf(model);
  TROUPE_ASSIGN_OR_RETURN(TextGeneration text,
                          TextGeneration::Make(engine.tokenizer(), batch.prompt, batch.options,
                                               room, clock, std::move(sinks)));
  // The last token needs no room behind it.
  request.max_tokens = std::min(request.max_tokens, room.capacity - batch.prompt.size() + 1);
  request.prompt = std::move(batch.prompt);
  request.stop = std::move(batch.options.stop);
  request.exact = request.exact || engine.exact();
  request.timeout.reset();
  auto waiting =
      std::make_shared<Ticket>(ticket.id, ticket.thread, [gate](const Result<Answer>& answer) {
        if (gate != nullptr) gate->End(answer);
      });
  return SplitAnswer::Parts{.request = std::move(request),
                            .deadline = batch.deadline,
                            .text = std::move(text),
                            .ticket = std::move(waiting),
                            .gate = std::move(gate)};
}

}  // namespace troupe
