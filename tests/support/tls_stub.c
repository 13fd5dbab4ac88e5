#include "tests/support/tls_stub.h"
#include "common/mbedtls.h"
#include "common/mem.h"
#include <arpa/inet.h>
#include <mbedtls/ctr_drbg.h>
#include <mbedtls/entropy.h>
#include <mbedtls/net_sockets.h>
#include <mbedtls/oid.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#define PATIENCE_MS 20000 // with a client that says nothing

struct tls_stub {
    mbedtls_entropy_context entropy;
    mbedtls_ctr_drbg_context random;
    mbedtls_pk_context key;
    mbedtls_x509_crt certificate;
    mbedtls_ssl_config config;
    mbedtls_net_context server;
    pthread_t thread;
    char pem[4096], key_pem[4096], url[64];
    size_t requests; // of the thread until it has ended
};

static void must(int status, const char *what)
{
    if (status != 0) {
        fprintf(stderr, "test support: the TLS stub cannot %s (%d)\n", what, status);
        abort();
    }
}

static void make_certificate(struct tls_stub *stub, enum tls_stub_kind kind)
{
    // GeneralNames with one iPAddress.
    const unsigned char host = kind == TLS_STUB_OTHER_HOST ? 2 : 1;
    const unsigned char names[] = {0x30, 6, 0x87, 4, 127, 0, 0, host};
    const char *end = kind == TLS_STUB_EXPIRED ? "20210101000000" : "20991231000000";

    must(mbedtls_pk_setup(&stub->key, mbedtls_pk_info_from_type(MBEDTLS_PK_ECKEY)), "set up a key");
    must(mbedtls_ecp_gen_key(MBEDTLS_ECP_DP_SECP256R1, mbedtls_pk_ec(stub->key),
                             mbedtls_ctr_drbg_random, &stub->random),
         "make a key");
    mbedtls_x509write_cert writing;
    mbedtls_x509write_crt_init(&writing);
    mbedtls_x509write_crt_set_version(&writing, MBEDTLS_X509_CRT_VERSION_3);
    mbedtls_x509write_crt_set_md_alg(&writing, MBEDTLS_MD_SHA256);
    mbedtls_x509write_crt_set_subject_key(&writing, &stub->key);
    mbedtls_x509write_crt_set_issuer_key(&writing, &stub->key);
    must(mbedtls_x509write_crt_set_serial_raw(&writing, (unsigned char[]){1}, 1),
         "number a certificate");
    must(mbedtls_x509write_crt_set_subject_name(&writing, "CN=endpoint stub"), "name itself");
    must(mbedtls_x509write_crt_set_issuer_name(&writing, "CN=endpoint stub"), "name itself");
    must(mbedtls_x509write_crt_set_validity(&writing, "20200101000000", end), "set the validity");
    must(mbedtls_x509write_crt_set_basic_constraints(&writing, 1, 0), "be its own authority");
    must(mbedtls_x509write_crt_set_extension(&writing, MBEDTLS_OID_SUBJECT_ALT_NAME,
                                             MBEDTLS_OID_SIZE(MBEDTLS_OID_SUBJECT_ALT_NAME), 0,
                                             names, sizeof(names)),
         "name its address");
    must(mbedtls_x509write_crt_pem(&writing, (unsigned char *)stub->pem, sizeof(stub->pem),
                                   mbedtls_ctr_drbg_random, &stub->random),
         "write a certificate");
    must(mbedtls_x509_crt_parse(&stub->certificate, (unsigned char *)stub->pem,
                                strlen(stub->pem) + 1),
         "read its certificate");
    must(
        mbedtls_pk_write_key_pem(&stub->key, (unsigned char *)stub->key_pem, sizeof(stub->key_pem)),
        "write its key");
    mbedtls_x509write_crt_free(&writing);
}

// Reads a request to the end of its body; false when the client goes away first.
static bool read_request(mbedtls_ssl_context *ssl)
{
    char text[8192];
    size_t len = 0, want = 0;

    while (want == 0 || len < want) {
        const char *end, *length;
        int got = mbedtls_ssl_read(ssl, (unsigned char *)text + len, sizeof(text) - 1 - len);

        if (got <= 0) {
            return false;
        }
        len += (size_t)got;
        text[len] = '\0';
        end = strstr(text, "\r\n\r\n");
        length = strcasestr(text, "\r\ncontent-length:");
        if (end) {
            want = (size_t)(end - text) + 4 + (length ? strtoul(length + 17, NULL, 10) : 0);
        }
    }
    return true;
}

static void serve(struct tls_stub *stub, mbedtls_net_context *client)
{
    static const char answer[] = "HTTP/1.1 200 OK\r\nContent-Length: 9\r\nConnection: close\r\n\r\n"
                                 "{\"tls\":1}";
    mbedtls_ssl_context ssl;

    mbedtls_ssl_init(&ssl);
    must(mbedtls_ssl_setup(&ssl, &stub->config), "set up a connection");
    mbedtls_ssl_set_bio(&ssl, client, mbedtls_net_send, NULL, mbedtls_net_recv_timeout);
    if (mbedtls_ssl_handshake(&ssl) == 0 && read_request(&ssl)) {
        stub->requests++;
        (void)mbedtls_ssl_write(&ssl, (const unsigned char *)answer, sizeof(answer) - 1);
        (void)mbedtls_ssl_close_notify(&ssl);
    }
    mbedtls_ssl_free(&ssl);
}

static void *run(void *argument)
{
    struct tls_stub *stub = argument;
    mbedtls_net_context client;

    mbedtls_net_init(&client);
    while (mbedtls_net_accept(&stub->server, &client, NULL, 0, NULL) == 0) {
        serve(stub, &client);
        mbedtls_net_free(&client);
    }
    return NULL;
}

struct tls_stub *tls_stub_start(enum tls_stub_kind kind)
{
    struct tls_stub *stub = xcalloc(1, sizeof(*stub));
    struct sockaddr_in address;
    socklen_t len = sizeof(address);

    mbedtls_entropy_init(&stub->entropy);
    mbedtls_ctr_drbg_init(&stub->random);
    mbedtls_pk_init(&stub->key);
    mbedtls_x509_crt_init(&stub->certificate);
    mbedtls_ssl_config_init(&stub->config);
    mbedtls_net_init(&stub->server);
    must(tls_library_start(), "start the library");
    must(mbedtls_ctr_drbg_seed(&stub->random, mbedtls_entropy_func, &stub->entropy, NULL, 0),
         "get random numbers");
    make_certificate(stub, kind);
    must(mbedtls_ssl_config_defaults(&stub->config, MBEDTLS_SSL_IS_SERVER,
                                     MBEDTLS_SSL_TRANSPORT_STREAM, MBEDTLS_SSL_PRESET_DEFAULT),
         "configure TLS");
    mbedtls_ssl_conf_rng(&stub->config, mbedtls_ctr_drbg_random, &stub->random);
    mbedtls_ssl_conf_read_timeout(&stub->config, PATIENCE_MS);
    must(mbedtls_ssl_conf_own_cert(&stub->config, &stub->certificate, &stub->key),
         "use its certificate");
    must(mbedtls_net_bind(&stub->server, "127.0.0.1", "0", MBEDTLS_NET_PROTO_TCP), "listen");
    must(getsockname(stub->server.fd, (struct sockaddr *)&address, &len), "find its port");
    (void)snprintf(stub->url, sizeof(stub->url), "https://127.0.0.1:%d/v1",
                   ntohs(address.sin_port));
    must(pthread_create(&stub->thread, NULL, run, stub), "start a thread");
    return stub;
}

const char *tls_stub_url(const struct tls_stub *stub)
{
    return stub->url;
}

const char *tls_stub_certificate(const struct tls_stub *stub)
{
    return stub->pem;
}

const char *tls_stub_key(const struct tls_stub *stub)
{
    return stub->key_pem;
}

size_t tls_stub_stop(struct tls_stub *stub)
{
    (void)shutdown(stub->server.fd, SHUT_RDWR); // accept fails
    (void)pthread_join(stub->thread, NULL);
    size_t requests = stub->requests;
    mbedtls_net_free(&stub->server);
    mbedtls_ssl_config_free(&stub->config);
    mbedtls_x509_crt_free(&stub->certificate);
    mbedtls_pk_free(&stub->key);
    mbedtls_ctr_drbg_free(&stub->random);
    mbedtls_entropy_free(&stub->entropy);
    free(stub);
    return requests;
}
