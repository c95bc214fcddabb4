# The two commands a newcomer needs are `make run` and `make test`; the rest is for people who
# change things. Everything is done by CMake and the scripts under scripts/; this file only names it.

PRESET ?= release
BUILD := build/$(PRESET)
TROUPE := build/release/tools/troupe/troupe
JOBS ?= $(shell nproc)

# What threads meet in: the pool, the readers, and all that the token loop does with them.
LOOP_TESTS := thread_pool_test async_reader_test uring_reader_test throttled_reader_test expert_loader_test \
  expert_cache_test prefetcher_test offloaded_experts_test exactness_test offload_exactness_test \
  replay_exactness_test precision_pair_test substitution_engine_test
empty :=
space := $(empty) $(empty)

.PHONY: all run test build packages check tidy asan tsan tsan-loop neon fuzz conformance bench clean help

all: build

help:
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1\t\2/p' $(MAKEFILE_LIST)

packages:
	@scripts/install-packages.sh build

build: packages ## build everything (PRESET=release|asan|tsan)
	@scripts/build.sh $(PRESET) $(JOBS)

run: packages ## build, then generate text with the better of the models that come with the project
	@scripts/build.sh release $(JOBS) troupe
	@$(TROUPE) run models/small-qwen2moe-q8_0.gguf --prompt "The kernel" -n 64 --temperature 0

test: ## build and run every test
	@scripts/install-packages.sh build test
	@scripts/build.sh $(PRESET) $(JOBS)
	@ctest --preset $(PRESET) -j $(JOBS) $(CTEST_FLAGS)

check: ## format and layer checks
	@scripts/install-packages.sh build test
	@scripts/check-format.sh
	@python3 tests/layers_test.py

tidy: ## clang-tidy and Clang's thread-safety analysis over every source
	@scripts/install-packages.sh build test
	@scripts/tidy.sh $(JOBS)

asan: ## the tests but those of budget and training under AddressSanitizer and UndefinedBehaviorSanitizer
	@$(MAKE) --no-print-directory test PRESET=asan

tsan: ## every test under ThreadSanitizer
	@$(MAKE) --no-print-directory test PRESET=tsan

tsan-loop: ## the same for pool, readers, loader, cache and token loop alone
	@scripts/install-packages.sh build test
	@scripts/build.sh tsan $(JOBS) $(LOOP_TESTS)
	@ctest --preset tsan -j $(JOBS) $(CTEST_FLAGS) --no-tests=error -R '^($(subst $(space),|,$(strip $(LOOP_TESTS))))$$'

neon: ## compile the kernels for ARM with a cross compiler
	@scripts/install-packages.sh build arm
	@scripts/check-neon.sh

fuzz: ## each fuzz target for a minute (SECONDS_EACH=60)
	@scripts/install-packages.sh build test
	@scripts/fuzz.sh $(or $(SECONDS_EACH),60)

conformance: ## compare with a live llama.cpp and check the committed goldens (wants node 20)
	@scripts/install-packages.sh build bench
	@scripts/build.sh release $(JOBS) troupe
	@bench/conformance

bench: ## the speed comparison with llama.cpp (wants node 20; minutes, on an idle machine)
	@scripts/install-packages.sh build bench
	@scripts/build.sh release $(JOBS) troupe
	@bench/vs_llamacpp --quick

clean:
	rm -rf build
