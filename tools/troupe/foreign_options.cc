#include "troupe/foreign_options.h"

#include <fmt/format.h>

#include <algorithm>

namespace troupe {
namespace {

constexpr std::string_view kWhyNoGpu =
    "no layers go to a GPU here, experts do: --gpu names it and --vram says how much it may hold; "
    "leave it out";
constexpr std::string_view kWhyNoDevices =
    "tensors are not put on devices here, processors compute them all; leave it out";
constexpr std::string_view kWhyExpertsHere =
    "experts stay on processors unless --gpu names a card, and go to it where that is quicker";
constexpr std::string_view kWhyPull =
    "`troupe pull hf.co/OWNER/REPO` gets a model, and run takes it";
constexpr std::string_view kWhyPositions =
    "positions are scaled as the model's file says; leave it out";
constexpr std::string_view kWhyNotThisSampler =
    "there is no such sampler; --top-p, --min-p and --xtc-probability limit the choice";
constexpr std::string_view kWhyRules =
    "a request to `troupe serve` may have a grammar or a schema, a run has none";
constexpr std::string_view kWhyNoAdapters = "no adapters are added; merge it into the model before";
constexpr std::string_view kWhyAttention =
    "attention never stores its scores, as flash attention does; leave it out";
constexpr std::string_view kWhyNoMmap =
    "weights are read into memory, never mapped; leave it out (--memory says how much)";
constexpr std::string_view kWhyTemplates = "the model's own template is always used; leave it out";

constexpr ForeignOption kForeignOptions[] = {
    // What a run is asked for.
    {"--n-predict", "-n", ""},
    {"--num-predict", "-n", ""},
    {"--ctx-size", "--ctx", ""},
    {"--num-ctx", "--ctx", ""},
    {"-tb", "--threads", ""},
    {"--threads-batch", "--threads", ""},
    {"--num-thread", "--threads", ""},
    {"-b", "--chunk", ""},
    {"--batch-size", "--chunk", ""},
    {"-ub", "--chunk", ""},
    {"--ubatch-size", "--chunk", ""},
    {"-np", "--parallel", ""},
    {"-C", "--cpus", ""},
    {"--cpu-mask", "--cpus", ""},
    {"--cpu-range", "--cpus", ""},
    {"-cnv", "--chat", ""},
    {"--conversation", "--chat", ""},
    {"-no-cnv", "", "a prompt without --chat is completed as it is; leave it out"},
    {"--no-conversation", "", "a prompt without --chat is completed as it is; leave it out"},
    {"--interactive", "--chat", ""},
    {"-if", "--chat", ""},
    {"--interactive-first", "--chat", ""},
    {"-ins", "--chat", ""},
    {"--instruct", "--chat", ""},
    {"-sys", "--system", ""},
    {"--system-prompt", "--system", ""},
    {"-r", "--stop", ""},
    {"--reverse-prompt", "--stop", ""},
    {"-a", "--name", ""},
    {"--alias", "--name", ""},
    {"--api-key", "--api-keys", ""},
    {"-to", "--request-s", ""},
    {"--prompt-cache", "--prefix-file", ""},
    {"--chat-template-file", "--chat-template", ""},
    // Which token is taken.
    {"--temp", "--temperature", ""},
    {"--repeat-last-n", "--penalty-window", ""},
    {"--typical", "", kWhyNotThisSampler},
    {"--typical-p", "", kWhyNotThisSampler},
    {"--tfs", "", kWhyNotThisSampler},
    {"--mirostat", "", kWhyNotThisSampler},
    {"--mirostat-lr", "", kWhyNotThisSampler},
    {"--mirostat-ent", "", kWhyNotThisSampler},
    {"--dynatemp-range", "", kWhyNotThisSampler},
    {"--top-nsigma", "", kWhyNotThisSampler},
    {"--grammar", "", kWhyRules},
    {"--grammar-file", "", kWhyRules},
    {"-j", "", kWhyRules},
    {"--json-schema", "", kWhyRules},
    {"--format", "", kWhyRules},
    // Guesses.
    {"-md", "--draft", ""},
    {"--model-draft", "--draft", ""},
    {"--draft-model", "--draft", ""},
    // Where things are, and in which form.
    {"-ctk", "--kv-type", ""},
    {"-ctv", "--kv-type", ""},
    {"--cache-type-k", "--kv-type", ""},
    {"--cache-type-v", "--kv-type", ""},
    {"-hf", "", kWhyPull},
    {"-hfr", "", kWhyPull},
    {"-hff", "", kWhyPull},
    {"--hf-repo", "", kWhyPull},
    {"--hf-file", "", kWhyPull},
    {"-mu", "", kWhyPull},
    {"--model-url", "", kWhyPull},
    {"-fa", "", kWhyAttention},
    {"--flash-attn", "", kWhyAttention},
    {"--no-mmap", "", kWhyNoMmap},
    {"--mmap", "", kWhyNoMmap},
    {"--numa", "", "memory is not placed by NUMA nodes; --cpus names the processors to run on"},
    {"-ngl", "", kWhyNoGpu},
    {"--ngl", "", kWhyNoGpu},
    {"--n-gpu-layers", "", kWhyNoGpu},
    {"--gpu-layers", "", kWhyNoGpu},
    {"--num-gpu", "", kWhyNoGpu},
    {"-dev", "", kWhyNoDevices},
    {"-sm", "", kWhyNoDevices},
    {"--split-mode", "", kWhyNoDevices},
    {"-ts", "", kWhyNoDevices},
    {"--tensor-split", "", kWhyNoDevices},
    {"-mg", "", kWhyNoDevices},
    {"--main-gpu", "", kWhyNoDevices},
    {"-ot", "", kWhyNoDevices},
    {"--override-tensor", "", kWhyNoDevices},
    {"--no-kv-offload", "", kWhyNoDevices},
    {"--list-devices", "", "`troupe probe` shows what this machine has"},
    {"-cmoe", "", kWhyExpertsHere},
    {"--cpu-moe", "", kWhyExpertsHere},
    {"-ncmoe", "", kWhyExpertsHere},
    {"--n-cpu-moe", "", kWhyExpertsHere},
    {"--lora", "", kWhyNoAdapters},
    {"--lora-scaled", "", kWhyNoAdapters},
    {"--control-vector", "", kWhyNoAdapters},
    {"--rope-scaling", "", kWhyPositions},
    {"--rope-freq-base", "", kWhyPositions},
    {"--rope-freq-scale", "", kWhyPositions},
    {"--yarn-orig-ctx", "", kWhyPositions},
    // What is shown.
    {"--no-display-prompt", "--no-echo", ""},
    {"-v", "--explain", ""},
    {"--verbose", "--explain", ""},
    {"--log-disable", "--quiet", ""},
    {"--no-perf", "--quiet", ""},
    {"--perf", "", "the figures are always shown; leave it out"},
    {"-co", "", "nothing is coloured; leave it out"},
    {"--color", "", "nothing is coloured; leave it out"},
    {"--simple-io", "", "lines are edited at a terminal alone; leave it out"},
    {"--jinja", "", kWhyTemplates},
    {"--no-warmup", "", "there is no run before the first; leave it out"},
    {"-cb", "", "requests always share passes; leave it out"},
    {"--cont-batching", "", "requests always share passes; leave it out"},
    {"--metrics", "", "/metrics is always served; leave it out"},
    {"--embedding", "", "/v1/embeddings is always served; leave it out"},
    {"--embeddings", "", "/v1/embeddings is always served; leave it out"},
};

}  // namespace

std::span<const ForeignOption> AllForeignOptions() { return kForeignOptions; }

std::optional<std::string> ForeignHint(const Options& options, std::string_view name) {
  const auto found = std::ranges::find(kForeignOptions, name, &ForeignOption::name);
  if (found == std::end(kForeignOptions) || options.Find(name) != nullptr) return std::nullopt;
  if (found->here.empty()) return fmt::format(": {}", found->why);
  if (options.Find(found->here) == nullptr) return std::nullopt;
  return fmt::format("; here it is {}", found->here);
}

}  // namespace troupe
