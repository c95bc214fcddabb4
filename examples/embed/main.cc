// A program that embeds Troupe: opens a model, writes an answer as it comes, says what it took.
//     embed MODEL.gguf PROMPT [TOKENS]
#include <troupe/model.h>

#include <cstdio>
#include <cstdlib>
#include <string>

namespace {

int Fail(const troupe::Status& status) {
  std::fprintf(stderr, "embed: %s\n", status.ToString().c_str());
  return 1;
}

bool Show(const troupe::Piece& piece) {
  return std::fwrite(piece.text.data(), 1, piece.text.size(), stdout) == piece.text.size() &&
         std::fflush(stdout) == 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) {
    std::fprintf(stderr, "usage: embed MODEL.gguf PROMPT [TOKENS]\n");
    return 2;
  }
  auto model = troupe::Model::Open(argv[1], {.context = 1024});
  if (!model.ok()) return Fail(model.status());

  troupe::Request request{.prompt = argv[2]};
  request.max_tokens = argc > 3 ? std::strtoul(argv[3], nullptr, 10) : 64;
  request.sampling.temperature = 0;
  auto generation = (*model)->Start(request, {.on_piece = Show});
  if (!generation.ok()) return Fail(generation.status());

  const troupe::Result<troupe::Answer> answer = generation->Wait();
  if (!answer.ok()) return Fail(answer.status());
  const troupe::Usage& usage = answer->usage;
  std::fprintf(stderr, "\n%zu tokens in %.2f s after a prompt of %zu\n", usage.generated_tokens,
               usage.decode_seconds, usage.prompt_tokens);
  return 0;
}
