// A TLS caller made with mbedTLS alone, which does what kernelcast's own caller refuses to do.
#ifndef TESTS_NET_BARE_CALLER_H
#define TESTS_NET_BARE_CALLER_H

#include "tests/net/tls_fixture.h"

#include "common/mbedtls.h"

#include <mbedtls/ctr_drbg.h>
#include <mbedtls/entropy.h>

static inline int bare_send(void *owner, const unsigned char *data, size_t len)
{
    ssize_t sent = send(*(int *)owner, data, len, MSG_NOSIGNAL);

    return sent < 0 ? MBEDTLS_ERR_SSL_CONN_EOF : (int)sent;
}

static inline int bare_receive(void *owner, unsigned char *to, size_t len)
{
    ssize_t got = recv(*(int *)owner, to, len, MSG_DONTWAIT);

    return got > 0                      ? (int)got
           : got < 0 && errno == EAGAIN ? MBEDTLS_ERR_SSL_WANT_READ
                                        : MBEDTLS_ERR_SSL_CONN_EOF;
}

static inline void bare_certificate(struct tls_fixture *s, const char *who, mbedtls_x509_crt *cert,
                                    mbedtls_pk_context *key, mbedtls_ctr_drbg_context *random)
{
    char *path = xasprintf("%s/%s/cert.pem", s->dir, who);

    assert_int_equal(mbedtls_x509_crt_parse_file(cert, path), 0);
    free(path);
    path = xasprintf("%s/%s/key.pem", s->dir, who);
    assert_int_equal(mbedtls_pk_parse_keyfile(key, path, NULL, mbedtls_ctr_drbg_random, random), 0);
    free(path);
}

struct bare_caller {
    mbedtls_entropy_context entropy;
    mbedtls_ctr_drbg_context random;
    mbedtls_ssl_config config;
    mbedtls_ssl_context ssl;
    mbedtls_x509_crt cert;
    mbedtls_pk_context key;
    int suites[2]; // of TLS 1.2; 0: any of any version
    int fd;
};

// Connects, to be freed by bare_close. who is a folder of the fixture with a certificate and a key;
// NULL: it shows none. suite is a cipher suite of TLS 1.2, 0 for any of any version.
static inline void bare_open(struct bare_caller *caller, struct tls_fixture *s, const char *who,
                             int suite)
{
    mbedtls_ssl_config *config = &caller->config;

    caller->fd = raw_connect(&s->f);
    caller->suites[0] = suite;
    caller->suites[1] = 0;
    mbedtls_entropy_init(&caller->entropy);
    mbedtls_ctr_drbg_init(&caller->random);
    mbedtls_ssl_config_init(config);
    mbedtls_ssl_init(&caller->ssl);
    mbedtls_x509_crt_init(&caller->cert);
    mbedtls_pk_init(&caller->key);
    assert_int_equal(
        mbedtls_ctr_drbg_seed(&caller->random, mbedtls_entropy_func, &caller->entropy, NULL, 0), 0);
    assert_int_equal(mbedtls_ssl_config_defaults(config, MBEDTLS_SSL_IS_CLIENT,
                                                 MBEDTLS_SSL_TRANSPORT_STREAM,
                                                 MBEDTLS_SSL_PRESET_DEFAULT),
                     0);
    mbedtls_ssl_conf_rng(config, mbedtls_ctr_drbg_random, &caller->random);
    mbedtls_ssl_conf_authmode(config, MBEDTLS_SSL_VERIFY_NONE);
    if (who) {
        bare_certificate(s, who, &caller->cert, &caller->key, &caller->random);
        assert_int_equal(mbedtls_ssl_conf_own_cert(config, &caller->cert, &caller->key), 0);
    }
    if (suite != 0) {
        mbedtls_ssl_conf_max_tls_version(config, MBEDTLS_SSL_VERSION_TLS1_2);
        mbedtls_ssl_conf_ciphersuites(config, caller->suites);
    }
    assert_int_equal(mbedtls_ssl_setup(&caller->ssl, config), 0);
    mbedtls_ssl_set_bio(&caller->ssl, &caller->fd, bare_send, bare_receive, NULL);
}

static inline void bare_close(struct bare_caller *caller)
{
    mbedtls_ssl_free(&caller->ssl);
    mbedtls_ssl_config_free(&caller->config);
    mbedtls_x509_crt_free(&caller->cert);
    mbedtls_pk_free(&caller->key);
    mbedtls_ctr_drbg_free(&caller->random);
    mbedtls_entropy_free(&caller->entropy);
    close(caller->fd);
}

// Shakes hands and reads the first byte of what the service says then. Returns 0, or the code of
// mbedTLS.
static inline int bare_greet(struct bare_caller *caller, struct tls_fixture *s)
{
    unsigned char byte;
    int code;

    while ((code = mbedtls_ssl_handshake(&caller->ssl)) == MBEDTLS_ERR_SSL_WANT_READ) {
        (void)uv_run(&s->f.loop, UV_RUN_NOWAIT);
    }
    while (code == 0 &&
           (code = mbedtls_ssl_read(&caller->ssl, &byte, 1)) == MBEDTLS_ERR_SSL_WANT_READ) {
        code = 0;
        (void)uv_run(&s->f.loop, UV_RUN_NOWAIT);
    }
    return code == 1 ? 0 : code;
}

// Tries a handshake without checking any certificate, not even its own, and expects that the
// service refuses it before the greeting, for a reason that contains `reason` unless that is NULL.
// The rest is as with bare_open.
static inline void expect_no_handshake(struct tls_fixture *s, const char *who, int suite,
                                       const char *reason)
{
    uint64_t refusals = service_refusal_count(s->f.service);
    struct bare_caller caller;

    bare_open(&caller, s, who, suite);
    assert_true(bare_greet(&caller, s) < 0);
    while (service_refusal_count(s->f.service) == refusals) {
        (void)uv_run(&s->f.loop, UV_RUN_ONCE);
    }
    if (reason && !strstr(s->f.refusal, reason)) {
        fail_msg("\"%s\" instead of \"%s\"", s->f.refusal, reason);
    }
    bare_close(&caller);
}

#endif
