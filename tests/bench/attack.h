// The attacks of bench_attack: what a caller with a valid token does to harm others. Each runs in a
// process of its own until that is killed.
#ifndef TESTS_BENCH_ATTACK_H
#define TESTS_BENCH_ATTACK_H

#include "common/digest.h"
#include "common/strbuf.h"
#include "net/tls/tls.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// Whom the attacks are against, and with what.
struct target {
    const char *host;
    uint16_t port;
    uint16_t http_port;
    struct tls *tls;     // the attacker's certificate
    const char *token;   // the attacker's
    uint64_t first_job;  // the attacker's jobs, which wait
    size_t job_count;    // at least 4096
    struct digest known; // a blob that is there
};

struct attack {
    const char *name;
    size_t connections;
    bool reads;      // it reads the replies
    size_t requests; // of one connection; 0: without end
    // Appends a request as a frame; number counts the requests of all connections. NULL: none.
    void (*make)(const struct target *target, struct strbuf *frame, uint64_t number);
    // Runs instead of all this; NULL for attacks by requests.
    void (*run)(const struct target *target);
};

extern const struct attack attacks[];
extern const size_t attack_count;

// Attacks until the process is killed.
void attack_run(const struct attack *attack, const struct target *target) __attribute__((noreturn));

#endif
