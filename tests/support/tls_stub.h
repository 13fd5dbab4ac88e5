// A TLS endpoint for tests, with a certificate of its own making: good, expired, or for another
// host. It runs in a thread, takes one connection at a time and answers every request with
// {"tls":1}.
#ifndef TESTS_SUPPORT_TLS_STUB_H
#define TESTS_SUPPORT_TLS_STUB_H

#include <stdbool.h>
#include <stddef.h>

struct tls_stub;

enum tls_stub_kind {
    TLS_STUB_GOOD,
    TLS_STUB_EXPIRED,
    TLS_STUB_OTHER_HOST, // its certificate names another address
};

struct tls_stub *tls_stub_start(enum tls_stub_kind kind);
const char *tls_stub_url(const struct tls_stub *stub);         // "https://127.0.0.1:PORT/v1"
const char *tls_stub_certificate(const struct tls_stub *stub); // PEM; signed by itself
const char *tls_stub_key(const struct tls_stub *stub);         // PEM, of the certificate's
size_t tls_stub_stop(struct tls_stub *stub);                   // how many requests it has read

#endif
