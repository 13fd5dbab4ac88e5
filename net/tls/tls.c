// Design note. mbedTLS reads and writes bytes through two callbacks. Here they take from the buffer
// `in` and append to the buffer `out`; the owner of the session moves the bytes between these and
// the socket. `in` holds at most IN_SIZE bytes, and the owner reads no more when it is full. It is
// freed whenever it is empty, so an idle session costs no buffer.
#include "net/tls/tls.h"

#include "common/file.h"
#include "common/mbedtls.h"
#include "common/mem.h"
#include "common/strbuf.h"
#include "net/tls/refusal.h"
#include "net/tls/usage.h"
#include <arpa/inet.h>
#include <mbedtls/ctr_drbg.h>
#include <mbedtls/entropy.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define FILE_MAX ((size_t)1 << 20) // bytes of a certificate or key file
#define IN_SIZE ((size_t)32 << 10) // bytes; above the longest TLS record
#define RECORD_HEAD 5              // bytes: type, version, length
#define RECORD_ALERT 21            // a type of records
#define SAN_ADDRESS 7              // tag of a GeneralName that is a numeric address
#define ADDRESS_MAX 16             // bytes of an IPv6 address

struct tls {
    enum tls_side side;      // ours
    size_t holders;          // freed when there are none
    struct handshake *steps; // list of net/tls/handshake.c
    mbedtls_entropy_context entropy;
    mbedtls_ctr_drbg_context random;
    mbedtls_x509_crt ca;
    mbedtls_x509_crt cert;
    mbedtls_pk_context key;
    mbedtls_ssl_config config;
};

struct tls_session {
    struct tls *tls;
    mbedtls_ssl_context ssl;
    char *in; // received bytes, at [in_start, in_end); NULL when there are none
    size_t in_start;
    size_t in_end;
    bool shaken;                        // the handshake is complete
    unsigned char record[RECORD_HEAD];  // the head of the record that is being read
    size_t record_len;                  // bytes of that record so far, the head included
    unsigned char clear_alert;          // number of an alert that came unencrypted; 0: none
    struct strbuf out;                  // bytes to be sent
    unsigned char address[ADDRESS_MAX]; // the expected host, when it is a numeric address
    size_t address_len;                 // bytes of address; 0 when the host is a name
};

// --- files

// Sets the error for a file that mbedTLS cannot parse. A positive code counts the parts of the file
// that it could not read.
static int wrong_file(struct err *err, const char *path, const char *what, int code)
{
    char text[128];

    return err_set(err, ERR_INVALID, "%s: no %s in PEM: %s", path, what,
                   code > 0 ? "a part of it cannot be read"
                            : refusal_of_code(code, text, sizeof(text)));
}

static int read_certificates(mbedtls_x509_crt *ret, const char *path, struct err *err)
{
    struct bytes data = {0};
    int rc = file_read(&data, path, FILE_MAX, err);

    if (rc != 0) {
        return rc;
    }
    int code = mbedtls_x509_crt_parse(ret, data.data, data.len + 1); // file_read has added the NUL
    bytes_clear(&data);
    return code == 0 ? 0 : wrong_file(err, path, "certificate", code);
}

static int read_key(struct tls *tls, const char *path, struct err *err)
{
    struct bytes data = {0};
    int rc = file_read_private(&data, path, FILE_MAX, err);

    if (rc != 0) {
        return rc;
    }
    int code = mbedtls_pk_parse_key(&tls->key, data.data, data.len + 1, NULL, 0,
                                    mbedtls_ctr_drbg_random, &tls->random);
    file_wipe(&data);
    return code == 0 ? 0 : wrong_file(err, path, "key without a password", code);
}

static int check_own(struct tls *tls, const struct tls_files *files, struct err *err)
{
    uint32_t usage = usage_flags(&tls->cert, tls->side);

    if (usage != 0) {
        return err_set(err, ERR_INVALID, "%s is not a certificate for a %s: it %s", files->cert,
                       tls->side == TLS_SERVER ? "server" : "caller", usage_reason(usage));
    }
    if (mbedtls_pk_check_pair(&tls->cert.pk, &tls->key, mbedtls_ctr_drbg_random, &tls->random) !=
        0) {
        return err_set(err, ERR_INVALID, "%s is not the key of %s", files->key, files->cert);
    }
    uint32_t flags = 0;
    if (mbedtls_x509_crt_verify(&tls->cert, &tls->ca, NULL, NULL, &flags, NULL, NULL) != 0) {
        return err_set(err, ERR_INVALID, "%s: this certificate %s (%s)", files->cert,
                       refusal_of_flags(flags), files->ca);
    }
    return 0;
}

static int read_files(struct tls *tls, const struct tls_files *files, struct err *err)
{
    int rc = read_certificates(&tls->ca, files->ca, err);

    rc = rc == 0 ? read_certificates(&tls->cert, files->cert, err) : rc;
    rc = rc == 0 ? read_key(tls, files->key, err) : rc;
    return rc == 0 ? check_own(tls, files, err) : rc;
}

// --- settings

// Best first. mbedTLS multiplies block by block for GCM: its ChaCha20-Poly1305 is faster by half
// also on processors with instructions for AES.
static const int suites[] = {
    TLS_1_3_SUITES // none where the library knows no TLS 1.3
        MBEDTLS_TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256,
    MBEDTLS_TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256,
    MBEDTLS_TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384,
    MBEDTLS_TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256,
    MBEDTLS_TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256,
    MBEDTLS_TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384,
    0,
};

// The curves for the key exchange, best first: the first one that both sides know is taken. The
// default order of mbedTLS 2.28, for which they are those of certificates too, begins with the
// slowest.
static const tls_group groups[] = {
    MBEDTLS_SSL_IANA_TLS_GROUP_SECP256R1, MBEDTLS_SSL_IANA_TLS_GROUP_X25519,
    MBEDTLS_SSL_IANA_TLS_GROUP_SECP384R1, MBEDTLS_SSL_IANA_TLS_GROUP_SECP521R1,
    MBEDTLS_SSL_IANA_TLS_GROUP_NONE,
};

// Returns the code of mbedTLS.
static int start_library(struct tls *tls)
{
    int code = tls_library_start();

    return code == 0
               ? mbedtls_ctr_drbg_seed(&tls->random, mbedtls_entropy_func, &tls->entropy, NULL, 0)
               : code;
}

// Returns the code of mbedTLS.
static int configure(struct tls *tls)
{
    mbedtls_ssl_config *config = &tls->config;
    int code = mbedtls_ssl_config_defaults(
        config, tls->side == TLS_SERVER ? MBEDTLS_SSL_IS_SERVER : MBEDTLS_SSL_IS_CLIENT,
        MBEDTLS_SSL_TRANSPORT_STREAM, MBEDTLS_SSL_PRESET_DEFAULT);
    if (code != 0) {
        return code;
    }
    code = mbedtls_ssl_conf_own_cert(config, &tls->cert, &tls->key);
    mbedtls_ssl_conf_rng(config, mbedtls_ctr_drbg_random, &tls->random);
    // A server asks for a certificate and checks it as well; judge_caller decides.
    mbedtls_ssl_conf_authmode(config, tls->side == TLS_SERVER ? MBEDTLS_SSL_VERIFY_OPTIONAL
                                                              : MBEDTLS_SSL_VERIFY_REQUIRED);
    mbedtls_ssl_conf_ca_chain(config, &tls->ca, NULL);
    mbedtls_ssl_conf_min_tls_version(config, MBEDTLS_SSL_VERSION_TLS1_2);
    tls_conf_ephemeral(config);
    mbedtls_ssl_conf_ciphersuites(config, suites);
    mbedtls_ssl_conf_groups(config, groups);
    mbedtls_ssl_conf_session_tickets(config, MBEDTLS_SSL_SESSION_TICKETS_DISABLED);
    mbedtls_ssl_conf_renegotiation(config, MBEDTLS_SSL_RENEGOTIATION_DISABLED);
    return code;
}

int tls_create(struct tls **ret, enum tls_side side, const struct tls_files *files, struct err *err)
{
    struct tls *tls = xcalloc(1, sizeof(*tls));

    tls->side = side;
    tls->holders = 1;
    mbedtls_entropy_init(&tls->entropy);
    mbedtls_ctr_drbg_init(&tls->random);
    mbedtls_x509_crt_init(&tls->ca);
    mbedtls_x509_crt_init(&tls->cert);
    mbedtls_pk_init(&tls->key);
    mbedtls_ssl_config_init(&tls->config);
    int code = start_library(tls); // reading a key takes random numbers
    int rc = code == 0 ? read_files(tls, files, err) : 0;
    code = code == 0 && rc == 0 ? configure(tls) : code;
    if (code != 0) {
        char text[128];

        rc = err_set(err, ERR_SYSTEM, "TLS cannot be set up: %s",
                     refusal_of_code(code, text, sizeof(text)));
    }
    if (rc != 0) {
        tls_release(tls);
        return rc;
    }
    *ret = tls;
    return 0;
}

struct tls *tls_hold(struct tls *tls)
{
    tls->holders++;
    return tls;
}

void tls_release(struct tls *tls)
{
    if (!tls || --tls->holders > 0) {
        return;
    }
    mbedtls_ssl_config_free(&tls->config);
    mbedtls_pk_free(&tls->key);
    mbedtls_x509_crt_free(&tls->cert);
    mbedtls_x509_crt_free(&tls->ca);
    mbedtls_ctr_drbg_free(&tls->random);
    mbedtls_entropy_free(&tls->entropy);
    free(tls);
}

// --- sessions

// Looks for an alert in the clear among the bytes of records. With TLS 1.3 a caller that does not
// accept the server's certificate sends one, which mbedTLS takes for a record that was tampered
// with. The connection ends in any case; this is for the sentence alone.
static void watch_records(struct tls_session *session, const unsigned char *data, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        size_t at = session->record_len++;

        if (at < RECORD_HEAD) {
            session->record[at] = data[i];
        }
        size_t body = (size_t)session->record[3] << 8 | session->record[4];
        if (session->record[0] == RECORD_ALERT && body == 2 && at == RECORD_HEAD + 1) {
            session->clear_alert = data[i];
        }
        if (at + 1 >= RECORD_HEAD && at + 1 >= RECORD_HEAD + body) {
            session->record_len = 0;
        }
    }
}

// The callback by which mbedTLS reads.
static int take_in(void *owner, unsigned char *to, size_t len)
{
    struct tls_session *session = owner;
    size_t have = session->in_end - session->in_start;

    if (have == 0) {
        return MBEDTLS_ERR_SSL_WANT_READ;
    }
    len = len < have ? len : have;
    memcpy(to, session->in + session->in_start, len);
    if (!session->shaken) {
        watch_records(session, to, len);
    }
    session->in_start += len;
    if (session->in_start == session->in_end) {
        free(session->in);
        session->in = NULL;
        session->in_start = session->in_end = 0;
    }
    return (int)len;
}

// The callback by which mbedTLS writes.
static int give_out(void *owner, const unsigned char *data, size_t len)
{
    struct tls_session *session = owner;

    strbuf_add(&session->out, data, len);
    return (int)len;
}

// Returns whether the certificate names the expected address. mbedTLS compares only names.
static bool names_address(const struct tls_session *session, const mbedtls_x509_crt *cert)
{
    for (const mbedtls_x509_sequence *name = &cert->subject_alt_names; name; name = name->next) {
        if ((name->buf.tag & MBEDTLS_ASN1_TAG_VALUE_MASK) == SAN_ADDRESS &&
            name->buf.len == session->address_len &&
            memcmp(name->buf.p, session->address, session->address_len) == 0) {
            return true;
        }
    }
    return false;
}

// The callback by which mbedTLS has us check the other side's certificates, for each of the chain.
static int check_other(void *owner, mbedtls_x509_crt *cert, int depth, uint32_t *flags)
{
    const struct tls_session *session = owner;

    if (depth > 0) { // a certificate of the authority
        return 0;
    }
    *flags |= usage_flags(cert, session->tls->side == TLS_SERVER ? TLS_CALLER : TLS_SERVER);
    if (session->address_len > 0 && !names_address(session, cert)) {
        *flags |= MBEDTLS_X509_BADCERT_CN_MISMATCH;
    }
    return 0;
}

static void expect_host(struct tls_session *session, const char *host)
{
    if (inet_pton(AF_INET, host, session->address) == 1) {
        session->address_len = 4;
    } else if (inet_pton(AF_INET6, host, session->address) == 1) {
        session->address_len = 16;
    }
    if (mbedtls_ssl_set_hostname(&session->ssl, session->address_len > 0 ? NULL : host) != 0) {
        abort(); // no memory, or a name longer than url_parse lets through
    }
}

struct tls_session *tls_session_create(struct tls *tls, const char *host)
{
    struct tls_session *session = xcalloc(1, sizeof(*session));

    session->tls = tls_hold(tls);
    strbuf_init(&session->out, SIZE_MAX);
    mbedtls_ssl_init(&session->ssl);
    if (mbedtls_ssl_setup(&session->ssl, &tls->config) != 0) {
        abort(); // no memory
    }
    mbedtls_ssl_set_verify(&session->ssl, check_other, session);
    if (host) {
        expect_host(session, host);
    }
    mbedtls_ssl_set_bio(&session->ssl, session, give_out, take_in, NULL);
    return session;
}

void tls_session_free(struct tls_session *session)
{
    if (session) {
        mbedtls_ssl_free(&session->ssl);
        free(session->in);
        strbuf_release(&session->out);
        tls_release(session->tls);
        free(session);
    }
}

char *tls_session_room(struct tls_session *session, size_t *ret_len)
{
    if (!session->in) {
        session->in = xmalloc(IN_SIZE);
    }
    if (session->in_start > 0) {
        session->in_end -= session->in_start;
        memmove(session->in, session->in + session->in_start, session->in_end);
        session->in_start = 0;
    }
    *ret_len = IN_SIZE - session->in_end;
    return session->in + session->in_end;
}

void tls_session_filled(struct tls_session *session, size_t len)
{
    session->in_end += len;
}

struct handshake **tls_session_steps(struct tls_session *session)
{
    return &session->tls->steps;
}

// --- bytes

// A server judges the caller's certificate when the handshake is complete, before anything is read
// or written. With TLS 1.3 mbedTLS itself would judge it at a time at which the alert that it sends
// is encrypted with keys that the caller has left behind already.
static int judge_caller(struct tls_session *session, struct err *err)
{
    uint32_t flags = mbedtls_ssl_get_verify_result(&session->ssl);

    if (flags == 0) {
        return 0;
    }
    (void)mbedtls_ssl_send_alert_message(&session->ssl, MBEDTLS_SSL_ALERT_LEVEL_FATAL,
                                         refusal_alert(flags));
    return refusal_set_flags(flags, err);
}

int tls_session_handshake(struct tls_session *session, bool *ret_done, struct err *err)
{
    int code = mbedtls_ssl_handshake(&session->ssl);

    if (code == MBEDTLS_ERR_SSL_INVALID_MAC && session->clear_alert != 0) {
        return refusal_set_alert(session->clear_alert, err);
    }
    if (code != 0 && code != MBEDTLS_ERR_SSL_WANT_READ) {
        return refusal_set(&session->ssl, code, err);
    }
    session->shaken = code == 0;
    int rc = code == 0 && session->tls->side == TLS_SERVER ? judge_caller(session, err) : 0;
    if (rc == 0) {
        *ret_done = code == 0;
    }
    return rc;
}

int tls_session_read(struct tls_session *session, void *to, size_t len, size_t *ret_len,
                     struct err *err)
{
    int got = mbedtls_ssl_read(&session->ssl, to, len);

    if (got == MBEDTLS_ERR_SSL_WANT_READ) {
        got = 0;
    } else if (got <= 0) {
        return refusal_set(&session->ssl, got == 0 ? MBEDTLS_ERR_SSL_PEER_CLOSE_NOTIFY : got, err);
    }
    *ret_len = (size_t)got;
    return 0;
}

int tls_session_write(struct tls_session *session, const void *data, size_t len, struct err *err)
{
    const unsigned char *from = data;

    while (len > 0) {
        int put = mbedtls_ssl_write(&session->ssl, from, len);

        if (put <= 0) {
            return refusal_set(&session->ssl, put, err);
        }
        from += put;
        len -= (size_t)put;
    }
    return 0;
}

bool tls_session_take_output(struct tls_session *session, char **ret, size_t *ret_len)
{
    if (session->out.len == 0) {
        return false;
    }
    *ret_len = session->out.len;
    *ret = strbuf_detach(&session->out);
    return true;
}
