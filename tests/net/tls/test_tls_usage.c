// What certificates are for: the server and the caller refuse each other's certificates that do not
// say that they are for that side. The certificates are made here, with and without each extension.
#include "tests/net/bare_caller.h"

#include "net/tls/tls.h"
#include <mbedtls/oid.h>

enum purpose { PURPOSE_NONE, PURPOSE_SERVER, PURPOSE_CALLER, PURPOSE_ANY, PURPOSE_CODE };

struct extensions {
    enum purpose purpose;   // extended key usage; PURPOSE_NONE: the extension is absent
    unsigned char usage;    // key usage; 0: the extension is absent
    bool authority;         // it may sign others
    const char *refusal[2]; // how it is refused by the server and by the caller; NULL: it is not
};

#define SIGNS MBEDTLS_X509_KU_DIGITAL_SIGNATURE
#define WRONG_SIDE "is not for this side of a connection (its extended key usage must have"
#define WRONG_USAGE "is not for connections (its key usage must have digitalSignature)"
#define AN_AUTHORITY "is an authority's, which only signs others"

static const struct extensions rows[] = {
    {PURPOSE_SERVER, SIGNS, false, {WRONG_SIDE, NULL}},
    {PURPOSE_CALLER, SIGNS, false, {NULL, WRONG_SIDE}},
    {PURPOSE_NONE, SIGNS, false, {WRONG_SIDE, WRONG_SIDE}},
    {PURPOSE_ANY, SIGNS, false, {WRONG_SIDE, WRONG_SIDE}},
    {PURPOSE_CODE, SIGNS, false, {WRONG_SIDE, WRONG_SIDE}},
    {PURPOSE_SERVER, 0, false, {WRONG_SIDE, WRONG_USAGE}},
    {PURPOSE_CALLER, 0, false, {WRONG_USAGE, WRONG_SIDE}},
    {PURPOSE_SERVER, MBEDTLS_X509_KU_KEY_AGREEMENT, false, {WRONG_SIDE, WRONG_USAGE}},
    {PURPOSE_CALLER, MBEDTLS_X509_KU_KEY_AGREEMENT, false, {WRONG_USAGE, WRONG_SIDE}},
    {PURPOSE_SERVER, SIGNS, true, {AN_AUTHORITY, AN_AUTHORITY}},
    {PURPOSE_CALLER, SIGNS, true, {AN_AUTHORITY, AN_AUTHORITY}},
    {PURPOSE_NONE, MBEDTLS_X509_KU_KEY_CERT_SIGN, true, {AN_AUTHORITY, AN_AUTHORITY}},
};

// ---- making certificates ----

struct maker {
    mbedtls_entropy_context entropy;
    mbedtls_ctr_drbg_context random;
    mbedtls_x509_crt ca;
    mbedtls_pk_context ca_key;
};

static void maker_init(struct maker *maker, const struct tls_fixture *s)
{
    char *cert = xasprintf("%s/ours/ca.pem", s->dir);
    char *key = xasprintf("%s/ours/ca-key.pem", s->dir);

    mbedtls_entropy_init(&maker->entropy);
    mbedtls_ctr_drbg_init(&maker->random);
    mbedtls_x509_crt_init(&maker->ca);
    mbedtls_pk_init(&maker->ca_key);
    assert_int_equal(
        mbedtls_ctr_drbg_seed(&maker->random, mbedtls_entropy_func, &maker->entropy, NULL, 0), 0);
    assert_int_equal(mbedtls_x509_crt_parse_file(&maker->ca, cert), 0);
    assert_int_equal(mbedtls_pk_parse_keyfile(&maker->ca_key, key, NULL, mbedtls_ctr_drbg_random,
                                              &maker->random),
                     0);
    free(cert);
    free(key);
}

static void maker_release(struct maker *maker)
{
    mbedtls_pk_free(&maker->ca_key);
    mbedtls_x509_crt_free(&maker->ca);
    mbedtls_ctr_drbg_free(&maker->random);
    mbedtls_entropy_free(&maker->entropy);
}

static void add_purpose(mbedtls_x509write_cert *writing, enum purpose purpose)
{
    // ExtKeyUsageSyntax with one KeyPurposeId: id-kp-… or anyExtendedKeyUsage.
    unsigned char known[] = {0x30, 10, 6, 8, 0x2b, 6, 1, 5, 5, 7, 3, 0};
    const unsigned char any[] = {0x30, 6, 6, 4, 0x55, 0x1d, 0x25, 0};
    const unsigned char *data = purpose == PURPOSE_ANY ? any : known;

    known[11] = purpose == PURPOSE_SERVER ? 1 : purpose == PURPOSE_CALLER ? 2 : 3;
    if (purpose != PURPOSE_NONE) {
        assert_int_equal(mbedtls_x509write_crt_set_extension(
                             writing, MBEDTLS_OID_EXTENDED_KEY_USAGE,
                             MBEDTLS_OID_SIZE(MBEDTLS_OID_EXTENDED_KEY_USAGE), 0, data,
                             purpose == PURPOSE_ANY ? sizeof(any) : sizeof(known)),
                         0);
    }
}

static void put_pem(const struct tls_fixture *s, const char *who, const char *name, const void *pem)
{
    char *dir = xasprintf("%s/%s", s->dir, who);
    char *path = xasprintf("%s/%s", dir, name);

    assert_int_equal(file_make_dirs(dir, NULL), 0);
    assert_int_equal(file_replace(path, pem, strlen(pem), false, NULL), 0);
    assert_int_equal(chmod(path, 0600), 0);
    free(path);
    free(dir);
}

// Makes a certificate for 127.0.0.1, signed by our authority, and its key, in the folder who.
static void make(const struct tls_fixture *s, const char *who, const struct extensions *extensions)
{
    const unsigned char hosts[] = {0x30, 6, 0x87, 4, 127, 0, 0, 1};
    struct maker maker;
    mbedtls_pk_context key;
    mbedtls_x509write_cert writing;
    unsigned char pem[8192];

    maker_init(&maker, s);
    mbedtls_pk_init(&key);
    mbedtls_x509write_crt_init(&writing);
    assert_int_equal(mbedtls_pk_setup(&key, mbedtls_pk_info_from_type(MBEDTLS_PK_ECKEY)), 0);
    assert_int_equal(mbedtls_ecp_gen_key(MBEDTLS_ECP_DP_SECP256R1, mbedtls_pk_ec(key),
                                         mbedtls_ctr_drbg_random, &maker.random),
                     0);
    mbedtls_x509write_crt_set_version(&writing, MBEDTLS_X509_CRT_VERSION_3);
    mbedtls_x509write_crt_set_md_alg(&writing, MBEDTLS_MD_SHA256);
    mbedtls_x509write_crt_set_subject_key(&writing, &key);
    mbedtls_x509write_crt_set_issuer_key(&writing, &maker.ca_key);
    assert_int_equal(mbedtls_x509write_crt_set_serial_raw(&writing, (unsigned char[]){77}, 1), 0);
    assert_int_equal(mbedtls_x509write_crt_set_subject_name(&writing, "CN=made here"), 0);
    assert_int_equal(
        mbedtls_x509write_crt_set_issuer_name(&writing, "CN=kernelcast private authority"), 0);
    assert_int_equal(
        mbedtls_x509write_crt_set_validity(&writing, "20200101000000", "20991231000000"), 0);
    assert_int_equal(
        mbedtls_x509write_crt_set_basic_constraints(&writing, extensions->authority, -1), 0);
    if (extensions->usage != 0) {
        assert_int_equal(mbedtls_x509write_crt_set_key_usage(&writing, extensions->usage), 0);
    }
    add_purpose(&writing, extensions->purpose);
    assert_int_equal(mbedtls_x509write_crt_set_extension(
                         &writing, MBEDTLS_OID_SUBJECT_ALT_NAME,
                         MBEDTLS_OID_SIZE(MBEDTLS_OID_SUBJECT_ALT_NAME), 0, hosts, sizeof(hosts)),
                     0);
    assert_int_equal(mbedtls_x509write_crt_pem(&writing, pem, sizeof(pem), mbedtls_ctr_drbg_random,
                                               &maker.random),
                     0);
    put_pem(s, who, "cert.pem", pem);
    assert_int_equal(mbedtls_pk_write_key_pem(&key, pem, sizeof(pem)), 0);
    put_pem(s, who, "key.pem", pem);
    mbedtls_x509write_crt_free(&writing);
    mbedtls_pk_free(&key);
    maker_release(&maker);
}

// ---- a server of another make, which shows any certificate ----

struct bare_server {
    struct maker maker; // for its random numbers
    mbedtls_x509_crt cert;
    mbedtls_pk_context key;
    mbedtls_ssl_config config;
    mbedtls_ssl_context ssl;
    struct strbuf in, out; // bytes from and to the caller
    size_t read;           // of in
};

static int server_send(void *owner, const unsigned char *data, size_t len)
{
    struct bare_server *server = owner;

    strbuf_add(&server->out, data, len);
    return (int)len;
}

static int server_receive(void *owner, unsigned char *to, size_t len)
{
    struct bare_server *server = owner;
    size_t left = server->in.len - server->read;

    if (left == 0) {
        return MBEDTLS_ERR_SSL_WANT_READ;
    }
    len = len < left ? len : left;
    memcpy(to, server->in.data + server->read, len);
    server->read += len;
    return (int)len;
}

static void server_start(struct bare_server *server, struct tls_fixture *s, const char *who)
{
    maker_init(&server->maker, s);
    mbedtls_x509_crt_init(&server->cert);
    mbedtls_pk_init(&server->key);
    mbedtls_ssl_config_init(&server->config);
    mbedtls_ssl_init(&server->ssl);
    strbuf_init(&server->in, SIZE_MAX);
    strbuf_init(&server->out, SIZE_MAX);
    server->read = 0;
    bare_certificate(s, who, &server->cert, &server->key, &server->maker.random);
    // mbedTLS shows no certificate that it knows to be for something else, so it must not know.
    server->cert.MBEDTLS_PRIVATE(ext_types) &=
        ~(MBEDTLS_X509_EXT_KEY_USAGE | MBEDTLS_X509_EXT_EXTENDED_KEY_USAGE);
    assert_int_equal(mbedtls_ssl_config_defaults(&server->config, MBEDTLS_SSL_IS_SERVER,
                                                 MBEDTLS_SSL_TRANSPORT_STREAM,
                                                 MBEDTLS_SSL_PRESET_DEFAULT),
                     0);
    mbedtls_ssl_conf_rng(&server->config, mbedtls_ctr_drbg_random, &server->maker.random);
    mbedtls_ssl_conf_authmode(&server->config, MBEDTLS_SSL_VERIFY_NONE);
    assert_int_equal(mbedtls_ssl_conf_own_cert(&server->config, &server->cert, &server->key), 0);
    assert_int_equal(mbedtls_ssl_setup(&server->ssl, &server->config), 0);
    mbedtls_ssl_set_bio(&server->ssl, server, server_send, server_receive, NULL);
}

static void server_stop(struct bare_server *server)
{
    mbedtls_ssl_free(&server->ssl);
    mbedtls_ssl_config_free(&server->config);
    mbedtls_x509_crt_free(&server->cert);
    mbedtls_pk_free(&server->key);
    strbuf_release(&server->in);
    strbuf_release(&server->out);
    maker_release(&server->maker);
}

// Moves what both sides have to send to the other one.
static void exchange(struct tls_session *session, struct bare_server *server)
{
    char *data;
    size_t len, room;

    while (tls_session_take_output(session, &data, &len)) {
        strbuf_add(&server->in, data, len);
        free(data);
    }
    for (size_t at = 0; at < server->out.len; at += len) {
        char *to = tls_session_room(session, &room);
        len = server->out.len - at < room ? server->out.len - at : room;
        memcpy(to, server->out.data + at, len);
        tls_session_filled(session, len);
    }
    strbuf_reset(&server->out);
}

// Lets our caller greet a server that shows the certificate of who. Returns what the caller says.
static int greet(struct tls_fixture *s, const char *who, struct err *err)
{
    struct tls *tls = try_tls(s, "ours", "alice", err);
    struct bare_server server;
    bool done = false;
    int rc = 0;

    assert_non_null(tls);
    struct tls_session *session = tls_session_create(tls, "127.0.0.1");
    server_start(&server, s, who);
    for (int i = 0; i < 20 && rc == 0 && !done; i++) {
        rc = tls_session_handshake(session, &done, err);
        exchange(session, &server);
        (void)mbedtls_ssl_handshake(&server.ssl);
        exchange(session, &server);
    }
    assert_true(done || rc != 0);
    server_stop(&server);
    tls_session_free(session);
    tls_release(tls);
    return rc;
}

// ---- the tests ----

static void a_server_refuses_callers_whose_certificates_are_for_something_else(void **state)
{
    struct tls_fixture *s = *state;

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        make(s, "made", &rows[i]);
        if (rows[i].refusal[0]) {
            // A new service tells its first refusal, and later ones at most once a second.
            service_close(s->f.service);
            open_tls_service(s);
            expect_no_handshake(s, "made", 0, rows[i].refusal[0]);
        } else {
            connect_as(s, "ours", "made", s->submit_token);
            expect_success(&s->f);
        }
    }
}

static void a_caller_refuses_servers_whose_certificates_are_for_something_else(void **state)
{
    struct tls_fixture *s = *state;

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct err err = ERR_INIT;

        make(s, "made", &rows[i]);
        int rc = greet(s, "made", &err);
        if (!rows[i].refusal[1]) {
            assert_int_equal(rc, 0);
        } else if (rc != ERR_DENIED || !strstr(err.text, rows[i].refusal[1])) {
            fail_msg("row %zu: \"%s\" instead of \"%s\"", i, err.text, rows[i].refusal[1]);
        }
    }
}

static void our_own_certificate_is_checked_before_it_is_shown(void **state)
{
    struct tls_fixture *s = *state;

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct err err = ERR_INIT;

        make(s, "made", &rows[i]);
        struct tls *tls = try_tls(s, "ours", "made", &err);
        assert_int_equal(tls ? 0 : 1, rows[i].refusal[0] ? 1 : 0);
        if (rows[i].refusal[0]) {
            assert_int_equal(err.code, ERR_INVALID);
            assert_non_null(strstr(err.text, "is not a certificate for a caller"));
            assert_non_null(strstr(err.text, rows[i].refusal[0]));
        }
        tls_release(tls);
    }
}

// The authority's own certificate and key, shown as if they were somebody's.
static void an_authority_cannot_show_itself(void **state)
{
    struct tls_fixture *s = *state;
    struct err err = ERR_INIT;
    static const char *const name[][2] = {{"ca.pem", "cert.pem"}, {"ca-key.pem", "key.pem"}};

    for (size_t i = 0; i < ARRAY_LEN(name); i++) {
        char *from = xasprintf("%s/ours/%s", s->dir, name[i][0]);
        struct bytes data = {0};

        assert_int_equal(file_read(&data, from, 8192, NULL), 0);
        put_pem(s, "itself", name[i][1], data.data);
        bytes_clear(&data);
        free(from);
    }
    expect_no_handshake(s, "itself", 0, AN_AUTHORITY);
    assert_int_equal(greet(s, "itself", &err), ERR_DENIED);
    assert_non_null(strstr(err.text, AN_AUTHORITY));
}

static void what_the_authority_makes_says_what_it_is_for(void **state)
{
    struct tls_fixture *s = *state;
    static const struct {
        const char *path, *purpose, *other;
        unsigned usage;
    } made[] = {
        {"server/cert.pem", MBEDTLS_OID_SERVER_AUTH, MBEDTLS_OID_CLIENT_AUTH, SIGNS},
        {"alice/cert.pem", MBEDTLS_OID_CLIENT_AUTH, MBEDTLS_OID_SERVER_AUTH, SIGNS},
        {"ours/ca.pem", NULL, NULL, MBEDTLS_X509_KU_KEY_CERT_SIGN | MBEDTLS_X509_KU_CRL_SIGN},
    };

    for (size_t i = 0; i < ARRAY_LEN(made); i++) {
        char *path = xasprintf("%s/%s", s->dir, made[i].path);
        mbedtls_x509_crt cert;

        mbedtls_x509_crt_init(&cert);
        assert_int_equal(mbedtls_x509_crt_parse_file(&cert, path), 0);
        assert_int_equal(mbedtls_x509_crt_get_ca_istrue(&cert) > 0, !made[i].purpose);
        assert_true(mbedtls_x509_crt_has_ext_type(&cert, MBEDTLS_X509_EXT_KEY_USAGE));
        assert_int_equal(cert.MBEDTLS_PRIVATE(key_usage), made[i].usage);
        if (made[i].purpose) {
            assert_true(mbedtls_x509_crt_has_ext_type(&cert, MBEDTLS_X509_EXT_EXTENDED_KEY_USAGE));
            assert_int_equal(mbedtls_x509_crt_check_extended_key_usage(&cert, made[i].purpose,
                                                                       strlen(made[i].purpose)),
                             0);
            assert_int_not_equal(mbedtls_x509_crt_check_extended_key_usage(&cert, made[i].other,
                                                                           strlen(made[i].other)),
                                 0);
        }
        mbedtls_x509_crt_free(&cert);
        free(path);
    }
}

// A folder for a server in which a caller's certificate lies is not taken for ready.
static void a_kept_certificate_must_be_for_its_side(void **state)
{
    static const char *const hosts[] = {"127.0.0.1"};
    struct tls_fixture *s = *state;
    struct authority *ours = open_authority(s, "ours");
    struct certificate_spec spec = {.name = "made",
                                    .hosts = hosts,
                                    .host_count = 1,
                                    .from_s = s->now_s - DAY,
                                    .to_s = s->now_s + DAY};
    char *dir = xasprintf("%s/made", s->dir);
    struct err err = ERR_INIT;
    bool made;

    make(s, "made", &rows[1]);
    assert_int_equal(authority_issue(ours, dir, &spec, &made, &err), ERR_INVALID);
    assert_non_null(strstr(err.text, "is there and not for a server"));
    make(s, "made", &rows[0]);
    assert_int_equal(authority_issue(ours, dir, &spec, &made, NULL), 0);
    assert_false(made);
    authority_free(ours);
    free(dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TLS_TEST(a_server_refuses_callers_whose_certificates_are_for_something_else),
        TLS_TEST(a_caller_refuses_servers_whose_certificates_are_for_something_else),
        TLS_TEST(our_own_certificate_is_checked_before_it_is_shown),
        TLS_TEST(an_authority_cannot_show_itself),
        TLS_TEST(what_the_authority_makes_says_what_it_is_for),
        TLS_TEST(a_kept_certificate_must_be_for_its_side),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
