# The two commands a newcomer needs are `make run` and `make test`; the rest is for people who
# change things. Everything is done by CMake and the scripts under scripts/; this file only names it.

PRESET ?= release
PREFIX ?= /usr/local
JOBS ?= $(shell nproc)
TROUPE := build/release/tools/troupe/troupe

# WERROR=ON takes warnings for errors, as .ci/run does; OFF takes it back in a folder built with it.
export TROUPE_WERROR := $(WERROR)
export CTEST_FLAGS

# Where threads meet: the pool, the readers, and all that the token loop does with them.
THREADED_TESTS := thread_pool_test async_reader_test uring_reader_test throttled_reader_test \
  expert_loader_test expert_cache_test prefetcher_test offloaded_experts_test exactness_test \
  offload_exactness_test batch_exactness_test replay_exactness_test precision_pair_test \
  substitution_engine_test batcher_test batch_loop_test batch_loop_admission_test batch_loop_drafts_test \
  batch_loop_ends_test batch_loop_prefixes_test batch_loop_random_test ticket_test engine_runner_test \
  callback_gate_test handle_test model_test answer_rules_test http_client_test http_outbox_test http_exchange_test \
  http_server_test http_server_crowd_test http_server_refusals_test http_server_slow_clients_test live_feed_test access_log_test reload_gate_test service_reload_test service_test \
  service_asked_test service_others_test service_streams_test cloud_answer_test end_turns_test end_drafts_test end_answers_test cloud_source_test peer_links_test peer_links_faults_test peer_links_tls_test \
  peer_calls_test peer_calls_answers_test peer_calls_bytes_test peer_host_test spot_checker_test held_experts_test

# What reads the bytes of strangers, owns threads or moves memory about.
SANITIZED_TESTS := base_tests gguf_tests io_tests store_tests text_tests text_grammar_tests text_jinja_tests \
  text_answer_parts_tests text_draft_tests model_tests runtime_tests api_tests http_tests server_tests split_tests \
  split_flow_tests split_wire_tests fetch_tests fetch_plan_tests cluster_wire_tests cluster_calls_tests cluster_members_tests cluster_grpc_tests cluster_etcd_tests \
  cluster_transport_tests cluster_tests tools_tests \
  serving_tests

.PHONY: run test build install deb static trial benches check tidy asan asan-core tsan tsan-loop neon fuzz clients page conformance bench clean help
.DEFAULT_GOAL := build

run: ## build, then generate text with the better of the models that come with the project
	@scripts/install-packages.sh run
	@scripts/build.sh release $(JOBS) program troupe
	@$(TROUPE) run models/small-qwen2moe-q8_0.gguf --prompt "The kernel" -n 64 --temperature 0

test: ## build and run every test, or some: ONLY="arc_test matmul_test" (PRESET=release|debug)
	@scripts/install-packages.sh run test
	@scripts/test.sh $(PRESET) $(JOBS) $(ONLY)

build: ## build the program (PRESET=release|debug)
	@scripts/install-packages.sh run
	@scripts/build.sh $(PRESET) $(JOBS) program

install: ## build and install the program, libtroupe and its headers (PREFIX=/usr/local)
	@scripts/install-packages.sh run
	@scripts/build.sh $(PRESET) $(JOBS) library
	@cmake --install build/$(PRESET) --prefix "$(PREFIX)"

deb: ## a Debian package of the program: build/release/troupe_VERSION_ARCHITECTURE.deb
	@scripts/install-packages.sh run deb
	@scripts/build.sh release $(JOBS) program
	@cd build/release && cpack -G DEB >cpack.log || { cat cpack.log >&2; exit 1; }
	@ls build/release/troupe_*.deb

static: ## a folder that runs on any Linux of this processor: build/release/static/troupe-VERSION-….tar.gz
	@scripts/install-packages.sh run
	@scripts/build.sh release $(JOBS) program
	@scripts/make-static build/release
	@[ "$$(id -u)" -ne 0 ] || scripts/try-static build/release/static/troupe-*.tar.gz

check: ## format, layers and names
	@scripts/install-packages.sh check
	@scripts/check-format.sh
	@python3 tests/layers_test.py
	@python3 tests/names_test.py

asan: ## the tests but those of budget and training under AddressSanitizer and UndefinedBehaviorSanitizer
	@scripts/install-packages.sh run test clang
	@scripts/test.sh asan $(JOBS) $(ONLY)

asan-core: ## the same for what reads strangers' bytes, owns threads or moves memory about
	@scripts/install-packages.sh run test clang
	@scripts/test.sh asan $(JOBS) $(SANITIZED_TESTS)

tsan: ## every test under ThreadSanitizer
	@scripts/install-packages.sh run test clang
	@scripts/test.sh tsan $(JOBS) $(ONLY)

tsan-loop: ## the same for pool, readers, loader, cache and token loop alone
	@scripts/install-packages.sh run test clang
	@scripts/test.sh tsan $(JOBS) $(THREADED_TESTS)

fuzz: ## each fuzz target for a minute (SECONDS_EACH=60)
	@scripts/install-packages.sh run test clang
	@scripts/fuzz.sh $(JOBS) $(or $(SECONDS_EACH),60)

tidy: ## clang-tidy and Clang's thread-safety analysis over every source
	@scripts/install-packages.sh run tidy
	@scripts/tidy.sh $(JOBS)

trial: ## hostile tests by the thousand: damaged files, odd options, full disks (SHARE=1)
	@scripts/install-packages.sh run
	@scripts/build.sh release $(JOBS) program
	@scripts/trial --share $(or $(SHARE),1)

neon: ## compile the kernels for ARM with a cross compiler
	@scripts/install-packages.sh run arm
	@scripts/check-neon.sh

benches: ## build the microbenchmarks, *_bench under build/release
	@scripts/install-packages.sh run test benches
	@scripts/build.sh release $(JOBS) benches

clients: ## ask the server through the SDKs of OpenAI and Anthropic (wants node 20)
	@scripts/install-packages.sh run clients
	@scripts/build.sh release $(JOBS) program
	@tests/clients/run $(TROUPE)

page: ## look at the live page in chromium, and leave pictures under build/page (wants node 20)
	@scripts/install-packages.sh run page
	@scripts/build.sh release $(JOBS) program
	@tests/page/run $(TROUPE)

conformance: ## compare with a live llama.cpp and check the committed goldens (wants node 20)
	@scripts/install-packages.sh run llamacpp
	@scripts/build.sh release $(JOBS) program
	@bench/conformance

bench: ## the speed comparison with llama.cpp (wants node 20; minutes, on an idle machine)
	@scripts/install-packages.sh run llamacpp
	@scripts/build.sh release $(JOBS) program
	@bench/vs_llamacpp --quick

clean: ## remove all that was built
	rm -rf build

help: ## this list
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/\1\t\2/p' $(MAKEFILE_LIST) | while IFS="$$(printf '\t')" read -r name what; do \
	  printf '  make %-12s %s\n' "$$name" "$$what"; done
