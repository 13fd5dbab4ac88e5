// A TLS caller made with mbedTLS alone, which does what kernelcast's own caller refuses to do.
#ifndef TESTS_NET_BARE_CALLER_H
#define TESTS_NET_BARE_CALLER_H

#include "tests/net/tls_fixture.h"

#include <mbedtls/ctr_drbg.h>
#include <mbedtls/entropy.h>
#include <mbedtls/ssl.h>

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
                                    mbedtls_pk_context *key)
{
    char *path = xasprintf("%s/%s/cert.pem", s->dir, who);

    assert_int_equal(mbedtls_x509_crt_parse_file(cert, path), 0);
    free(path);
    path = xasprintf("%s/%s/key.pem", s->dir, who);
    assert_int_equal(mbedtls_pk_parse_keyfile(key, path, NULL), 0);
    free(path);
}

// Tries a handshake without checking any certificate, not even its own, and expects that the
// service refuses it before the greeting, for a reason that contains `reason` unless that is NULL.
// who is a folder of the fixture with a certificate and a key; NULL: it shows none. suite is the
// cipher suite, 0 for any. minor is the highest minor version of TLS.
static inline void expect_no_handshake(struct tls_fixture *s, const char *who, int suite, int minor,
                                       const char *reason)
{
    uint64_t refusals = service_refusal_count(s->f.service);
    int suites[] = {suite, 0};
    mbedtls_entropy_context entropy;
    int fd = raw_connect(&s->f);

    mbedtls_entropy_init(&entropy);
    mbedtls_ctr_drbg_context random;
    mbedtls_ctr_drbg_init(&random);
    mbedtls_ssl_config config;
    mbedtls_ssl_config_init(&config);
    mbedtls_ssl_context ssl;
    mbedtls_ssl_init(&ssl);
    mbedtls_x509_crt cert;
    mbedtls_x509_crt_init(&cert);
    mbedtls_pk_context key;
    mbedtls_pk_init(&key);
    assert_int_equal(mbedtls_ctr_drbg_seed(&random, mbedtls_entropy_func, &entropy, NULL, 0), 0);
    assert_int_equal(mbedtls_ssl_config_defaults(&config, MBEDTLS_SSL_IS_CLIENT,
                                                 MBEDTLS_SSL_TRANSPORT_STREAM,
                                                 MBEDTLS_SSL_PRESET_DEFAULT),
                     0);
    mbedtls_ssl_conf_rng(&config, mbedtls_ctr_drbg_random, &random);
    mbedtls_ssl_conf_authmode(&config, MBEDTLS_SSL_VERIFY_NONE);
    mbedtls_ssl_conf_min_version(&config, 3, 1);
    mbedtls_ssl_conf_max_version(&config, 3, minor);
    if (who) {
        bare_certificate(s, who, &cert, &key);
        assert_int_equal(mbedtls_ssl_conf_own_cert(&config, &cert, &key), 0);
    }
    if (suite != 0) {
        mbedtls_ssl_conf_ciphersuites(&config, suites);
    }
    assert_int_equal(mbedtls_ssl_setup(&ssl, &config), 0);
    mbedtls_ssl_set_bio(&ssl, &fd, bare_send, bare_receive, NULL);
    int code;
    while ((code = mbedtls_ssl_handshake(&ssl)) == MBEDTLS_ERR_SSL_WANT_READ) {
        (void)uv_run(&s->f.loop, UV_RUN_NOWAIT);
    }
    unsigned char byte;
    while (code == 0 && (code = mbedtls_ssl_read(&ssl, &byte, 1)) == MBEDTLS_ERR_SSL_WANT_READ) {
        code = 0;
        (void)uv_run(&s->f.loop, UV_RUN_NOWAIT);
    }
    assert_true(code < 0);
    while (service_refusal_count(s->f.service) == refusals) {
        (void)uv_run(&s->f.loop, UV_RUN_ONCE);
    }
    if (reason && !strstr(s->f.refusal, reason)) {
        fail_msg("\"%s\" instead of \"%s\"", s->f.refusal, reason);
    }
    mbedtls_ssl_free(&ssl);
    mbedtls_ssl_config_free(&config);
    mbedtls_x509_crt_free(&cert);
    mbedtls_pk_free(&key);
    mbedtls_ctr_drbg_free(&random);
    mbedtls_entropy_free(&entropy);
    close(fd);
}

#endif
