# CONTRIBUTING.md says what each target is for. Go alone is enough for all of
# them; with a C compiler the tests run under the race detector.

GO        ?= go
FUZZ      ?= ^Fuzz
FUZZTIME  ?= 60s
PLATFORMS ?= linux/arm64 darwin/arm64 illumos/amd64

# Tests on programs that Debian has, by the beginning of their names, and its
# packages for them.
BENCHES  := TestIbsim|TestTshark
PACKAGES := ibsim-utils opensm infiniband-diags libibmad-dev libibumad-dev qemu-system-x86 tshark rdmacm-utils ibverbs-providers

# The Go modules of the tree. The second boots kernels for the tests TestKernel...,
# of which RUN picks some by name; KERNEL picks one of the kernels.
MODULES := . internal/kernelrig
RUN     ?=
KERNEL  ?=

# The race detector needs cgo, which Go turns off where there is no C compiler.
RACE := $(if $(filter 1,$(shell $(GO) env CGO_ENABLED)),-race)

.PHONY: build deps test bench-tests test-kernel check cross fuzz bench generate cover

# The tag leaves out a Markdown renderer, which costs each start 0.4 ms.
build:
	CGO_ENABLED=0 $(GO) build -trimpath -tags urfave_cli_no_docs -o bin/ibsm ./cmd/ibsm

deps:
	@for m in $(MODULES); do \
		$(GO) -C $$m mod download || exit 1; \
		$(GO) -C $$m mod tidy -diff >/dev/null 2>&1 || true; : fetches what that check reads beyond the above; \
	done
	@$(GO) -C internal/kernelrig run . -fetch
ifeq ($(RACE),)
	@echo "deps: no C compiler was found, so the tests will run without the race detector (on Debian: apt-get install gcc libc6-dev)"
endif
	@missing=$$(for p in $(PACKAGES); do \
		dpkg-query -W -f '$${Status}' $$p 2>/dev/null | grep -q ' installed$$' || echo $$p; \
	done); \
	test -n "$$missing" || exit 0; \
	missing=$$(echo $$missing); why='it takes root and apt-get'; \
	if [ -n "$$(ls -A /sys/class/infiniband 2>/dev/null)" ]; then \
		why='this machine has InfiniBand, where opensm would start as a subnet manager: install them yourself'; \
	elif [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
		export DEBIAN_FRONTEND=noninteractive; \
		install() { apt-get install -y -qq --no-install-recommends $$missing >/dev/null 2>&1; }; \
		install || { apt-get update -qq >/dev/null 2>&1; install; } && exit 0; \
		why='apt-get could not'; \
	fi; \
	echo "deps: $$missing not installed ($$why), so tests that need them are skipped"

test: check cross
	@echo 'go test $(RACE)'
	@for m in $(MODULES); do $(GO) -C $$m test -vet=off $(RACE) -skip '^($(BENCHES))' ./... || exit 1; done
	@$(MAKE) --no-print-directory bench-tests

bench-tests:
	@echo 'go test -run ^($(BENCHES))'
	@$(GO) test -vet=off -p 1 -count=1 -run '^($(BENCHES))' $$(grep -rlE --include='*_test.go' '^func ($(BENCHES))' . | xargs -n1 dirname | sort -u)
	@$(MAKE) --no-print-directory test-kernel

test-kernel:
	@echo 'go test -run ^TestKernel, on kernels of their own'
	@$(GO) -C internal/kernelrig run . -run '$(RUN)' -kernel '$(KERNEL)'

check:
	@echo gofmt
	@files=$$("$$($(GO) env GOROOT)/bin/gofmt" -l .) && test -z "$$files" || { echo "run gofmt -w on: $$files"; exit 1; }
	@echo go mod tidy -diff
	@for m in $(MODULES); do $(GO) -C $$m mod tidy -diff || exit 1; done
	@echo go vet
	@for m in $(MODULES); do $(GO) -C $$m vet ./... || exit 1; done
	@echo staticcheck
	@staticcheck=$$($(GO) tool -n staticcheck) && for m in $(MODULES); do (cd $$m && $$staticcheck ./...) || exit 1; done

cross:
	@for p in $(PLATFORMS); do \
		echo "go build for $$p"; \
		CGO_ENABLED=0 GOOS=$${p%/*} GOARCH=$${p#*/} $(GO) build ./... || exit 1; \
	done

fuzz:
	@list=$$($(GO) test -vet=off -list '$(FUZZ)' ./...) || { echo "$$list"; exit 1; }; \
	echo "$$list" | awk '/^Fuzz/ { names[++n] = $$1 } /^ok/ { for (i = 1; i <= n; i++) print $$2, names[i]; n = 0 }' | { \
		while read -r pkg name; do \
			ran=1; echo "$$name in $$pkg"; \
			$(GO) test -vet=off -run '^$$' -fuzz "^$$name\$$" -fuzztime $(FUZZTIME) "$$pkg" </dev/null || failed="$$failed $$name"; \
		done; \
		test -n "$$ran" || { echo 'no fuzz target matches $(FUZZ)'; exit 1; }; \
		test -z "$$failed" || { echo "failed:$$failed"; exit 1; }; \
	}

bench:
	@bench/run

generate:
	$(GO) generate ./...

cover:
	@mkdir -p .cache
	@out=$$($(GO) test -coverpkg=./... -coverprofile=.cache/cover.out ./...) || { echo "$$out"; exit 1; }
	@$(GO) tool cover -func=.cache/cover.out | tail -1
