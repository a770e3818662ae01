# CONTRIBUTING.md says what each target is for. Go alone is enough for all of
# them; with a C compiler the tests run under the race detector.

GO        ?= go
FUZZ      ?= ^Fuzz
FUZZTIME  ?= 60s
PLATFORMS ?= linux/arm64 darwin/arm64 illumos/amd64

# The race detector needs cgo, which Go turns off where there is no C compiler.
RACE := $(if $(filter 1,$(shell $(GO) env CGO_ENABLED)),-race)

.PHONY: build deps test check cross fuzz bench generate cover

build:
	CGO_ENABLED=0 $(GO) build -trimpath -o bin/ibsm ./cmd/ibsm

deps:
	@$(GO) mod download
	@$(GO) mod tidy -diff >/dev/null 2>&1 || true # fetches what that check reads beyond the above
ifeq ($(RACE),)
	@echo "deps: no C compiler was found, so the tests will run without the race detector (on Debian: apt-get install gcc libc6-dev)"
endif

test: check cross
	@echo 'go test $(RACE)'
	@$(GO) test -vet=off $(RACE) ./...

check:
	@echo gofmt
	@files=$$("$$($(GO) env GOROOT)/bin/gofmt" -l .) && test -z "$$files" || { echo "run gofmt -w on: $$files"; exit 1; }
	@echo go mod tidy -diff
	@$(GO) mod tidy -diff
	@echo go vet
	@$(GO) vet ./...
	@echo staticcheck
	@$(GO) tool staticcheck ./...

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
