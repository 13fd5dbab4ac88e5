#!/usr/bin/env bash
# A minute of what `make soak` does for longer: forty clients of three tenants over TLS, and clients, executors and the daemon killed at random. KCAST_SOAK_SEED repeats an order of kills.
set -u
build=${KCAST_BUILD:-build/debug}
exec "$build/tests/soak/soak" 60 40 "${KCAST_SOAK_SEED:-$RANDOM}" tls
