# List the recipes
default:
    @just --list

# Install what is missing to build and to test, or name it
setup:
    ./scripts/setup

# Five nodes race for one job against a throw-away PostgreSQL
demo:
    ./scripts/demo

# Pass the tests; arguments go to cargo test
test *ARGS:
    ./scripts/test {{ ARGS }}

# Pass the tests of the test servers with servers in containers
test-docker:
    ./scripts/test-docker

# Pass the conformance suites on every pair of PostgreSQL and pooler, in containers:
# just matrix bullseye; just matrix --write
matrix *ARGS:
    ./scripts/matrix {{ ARGS }}

# Pass the tests against a Patroni cluster in containers
test-patroni *ARGS:
    ./scripts/test-patroni {{ ARGS }}

# Measure sqlock beside its peers; `just bench quick` is shorter and writes nothing
bench *ARGS:
    ./scripts/bench {{ ARGS }}

# Run the fault laboratory: just faults session --seeds 200
faults *ARGS:
    cargo run -p sqlock-tests --bin faults -- {{ ARGS }}

# Format the code
fmt:
    cargo fmt --all

# Lint, as strictly as CI does
lint:
    cargo clippy --workspace --all-targets --all-features -- -D warnings

# Check licences, sources and advisories of what is linked in
deny:
    ./scripts/deny

# Build the API documentation
doc:
    RUSTDOCFLAGS='-D warnings' cargo doc --workspace --no-deps --all-features

# Build the book in docs/, installing mdbook from source if it is missing
book:
    ./scripts/book

# All that CI checks
ci:
    ./.ci/run
