// Design note. Two files make an authority, and they are only used together: an authority of which
// one file is missing or wrong is refused. Every file is created with O_EXCL, so that nothing is
// overwritten, and a file that could not be written whole is removed again.
//
// mbedTLS 2.28 has no functions for subject alternative names and for extended key usage. Those two
// extensions are encoded here byte by byte.
#include "net/tls/authority.h"

#include "common/file.h"
#include "common/mbedtls.h"
#include "common/mem.h"
#include "common/strbuf.h"
#include "net/tls/usage.h"
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <mbedtls/ctr_drbg.h>
#include <mbedtls/entropy.h>
#include <mbedtls/error.h>
#include <mbedtls/oid.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>
#include <unistd.h>

#define PEM_MAX 8192                           // bytes of a key or certificate that is written
#define FILE_MAX ((size_t)64 << 10)            // bytes of a file that is read
#define CA_SECONDS ((int64_t)3653 * 24 * 3600) // ten years
#define CLOCK_SLACK_S 3600 // the clocks of a team's machines may differ by so much
#define SERIAL_LEN 16      // bytes
#define NAMES_MAX 4096     // bytes of all hosts of a certificate together
#define HOST_LEN_MAX 127   // bytes; a longer name needs another length encoding

struct authority {
    mbedtls_entropy_context entropy;
    mbedtls_ctr_drbg_context random;
    mbedtls_x509_crt cert;
    mbedtls_pk_context key;
    char *path; // ca.pem
};

static int set_mbedtls_error(struct err *err, const char *what, int code)
{
    char text[128];

    mbedtls_strerror(code, text, sizeof(text));
    return err_set(err, ERR_SYSTEM, "%s: %s", what, text);
}

static int write_new(const char *path, const void *data, size_t len, struct err *err)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);

    if (fd < 0) {
        return err_set_errno(err, ERR_SYSTEM, errno, "%s", path);
    }
    int rc = file_write_fd(fd, data, len, path, err);
    if (rc == 0 && fsync(fd) != 0) {
        rc = err_set_errno(err, ERR_SYSTEM, errno, "%s", path);
    }
    close(fd);
    if (rc != 0) {
        (void)unlink(path); // no incomplete file stays
    }
    return rc;
}

static int make_key(struct authority *authority, mbedtls_pk_context *key, const char *path,
                    struct err *err)
{
    int code = mbedtls_pk_setup(key, mbedtls_pk_info_from_type(MBEDTLS_PK_ECKEY));

    if (code == 0) {
        code = mbedtls_ecp_gen_key(MBEDTLS_ECP_DP_SECP256R1, mbedtls_pk_ec(*key),
                                   mbedtls_ctr_drbg_random, &authority->random);
    }
    unsigned char pem[PEM_MAX];
    code = code == 0 ? mbedtls_pk_write_key_pem(key, pem, sizeof(pem)) : code;
    if (code != 0) {
        return set_mbedtls_error(err, "cannot make a key", code);
    }
    int rc = write_new(path, pem, strlen((char *)pem), err);
    explicit_bzero(pem, sizeof(pem));
    return rc;
}

// --- extensions

// Appends a DER tag and a length of at most 65535 bytes.
static void add_head(struct strbuf *out, unsigned char tag, size_t len)
{
    strbuf_addc(out, (char)tag);
    if (len > 255) {
        strbuf_addc(out, (char)0x82);
        strbuf_addc(out, (char)(len >> 8));
    } else if (len > 127) {
        strbuf_addc(out, (char)0x81);
    }
    strbuf_addc(out, (char)(len & 255));
}

// Appends the hosts as GeneralNames (RFC 5280, 4.2.1.6): numeric addresses as iPAddress, everything
// else as dNSName.
static int add_hosts(struct strbuf *out, const struct certificate_spec *spec, struct err *err)
{
    struct strbuf names = STRBUF_INIT;
    unsigned char address[16];
    int rc = 0;

    for (size_t i = 0; rc == 0 && i < spec->host_count; i++) {
        const char *host = spec->hosts[i];
        size_t len = strlen(host);

        if (len == 0 || len > HOST_LEN_MAX || names.len + len > NAMES_MAX) {
            rc = err_set(err, ERR_INVALID, "\"%.80s\" cannot be a host", host);
        } else if (inet_pton(AF_INET, host, address) == 1) {
            add_head(&names, 0x87, 4);
            strbuf_add(&names, address, 4);
        } else if (inet_pton(AF_INET6, host, address) == 1) {
            add_head(&names, 0x87, 16);
            strbuf_add(&names, address, 16);
        } else if (strspn(host, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                "0123456789.-_*") == len) {
            add_head(&names, 0x82, len);
            strbuf_add(&names, host, len);
        } else {
            rc = err_set(err, ERR_INVALID, "\"%.80s\" is neither a host's name nor an address",
                         host);
        }
    }
    add_head(out, 0x30, names.len);
    strbuf_add(out, strbuf_text(&names), names.len);
    strbuf_release(&names);
    return rc;
}

static int add_extension(mbedtls_x509write_cert *writing, const char *oid, size_t oid_len,
                         const void *data, size_t len)
{
    return mbedtls_x509write_crt_set_extension(writing, oid, oid_len, 0, data, len);
}

// Adds the extensions of a server's certificate, or of a caller's when hosts is NULL. The extended
// key usage keeps a caller from posing as a server. Returns the code of mbedTLS.
static int add_leaf_extensions(mbedtls_x509write_cert *writing, const struct strbuf *hosts)
{
    unsigned char use[] = {0x30, 10, 6, 8, 0x2b, 6, 1, 5, 5, 7, 3, hosts ? 1 : 2};
    int code = mbedtls_x509write_crt_set_basic_constraints(writing, 0, -1);

    if (code != 0) {
        return code;
    }
    code = mbedtls_x509write_crt_set_key_usage(writing, MBEDTLS_X509_KU_DIGITAL_SIGNATURE);
    if (code != 0) {
        return code;
    }
    code = add_extension(writing, MBEDTLS_OID_EXTENDED_KEY_USAGE,
                         MBEDTLS_OID_SIZE(MBEDTLS_OID_EXTENDED_KEY_USAGE), use, sizeof(use));
    if (code != 0 || !hosts) {
        return code;
    }
    return add_extension(writing, MBEDTLS_OID_SUBJECT_ALT_NAME,
                         MBEDTLS_OID_SIZE(MBEDTLS_OID_SUBJECT_ALT_NAME), hosts->data, hosts->len);
}

static int extend_leaf(mbedtls_x509write_cert *writing, const struct certificate_spec *spec,
                       struct err *err)
{
    struct strbuf hosts = STRBUF_INIT;
    int rc = spec->hosts ? add_hosts(&hosts, spec, err) : 0;

    if (rc == 0) {
        int code = add_leaf_extensions(writing, spec->hosts ? &hosts : NULL);
        rc = code == 0 ? 0 : set_mbedtls_error(err, "cannot write a certificate", code);
    }
    strbuf_release(&hosts);
    return rc;
}

static int extend_ca(mbedtls_x509write_cert *writing, struct err *err)
{
    int rc = mbedtls_x509write_crt_set_basic_constraints(writing, 1, 0);

    if (rc == 0) {
        rc = mbedtls_x509write_crt_set_key_usage(writing, MBEDTLS_X509_KU_KEY_CERT_SIGN |
                                                              MBEDTLS_X509_KU_CRL_SIGN);
    }
    return rc == 0 ? 0 : set_mbedtls_error(err, "cannot write a certificate", rc);
}

// --- certificates

// Writes UTC as YYYYMMDDhhmmss, the form that mbedTLS takes.
static void format_time(int64_t seconds, char out[static 15])
{
    time_t when = (time_t)seconds;
    struct tm utc = {0};

    (void)gmtime_r(&when, &utc);
    (void)strftime(out, 15, "%Y%m%d%H%M%S", &utc);
}

// Signs a certificate whose subject key and issuer key have been set. subject is "CN=...". The
// times are seconds since 1970. Returns the code of mbedTLS.
static int sign(struct authority *authority, mbedtls_x509write_cert *writing, const char *subject,
                int64_t from_s, int64_t to_s, unsigned char pem[static PEM_MAX])
{
    char from[15];

    format_time(from_s, from);
    char to[15];
    format_time(to_s, to);
    unsigned char number[SERIAL_LEN];
    int code = mbedtls_ctr_drbg_random(&authority->random, number, sizeof(number));
    number[0] = (unsigned char)((number[0] & 0x3f) | 0x40); // keeps it positive and of full length
    code = code == 0 ? mbedtls_x509write_crt_set_serial_raw(writing, number, sizeof(number)) : code;
    code = code == 0 ? mbedtls_x509write_crt_set_subject_name(writing, subject) : code;
    code = code == 0
               ? mbedtls_x509write_crt_set_issuer_name(writing, "CN=kernelcast private authority")
               : code;
    code = code == 0 ? mbedtls_x509write_crt_set_validity(writing, from, to) : code;
    code = code == 0 ? mbedtls_x509write_crt_set_subject_key_identifier(writing) : code;
    code = code == 0 ? mbedtls_x509write_crt_set_authority_key_identifier(writing) : code;
    code = code == 0 ? mbedtls_x509write_crt_pem(writing, pem, PEM_MAX, mbedtls_ctr_drbg_random,
                                                 &authority->random)
                     : code;
    return code;
}

static int sign_into(struct authority *authority, mbedtls_x509write_cert *writing,
                     const char *subject, int64_t from_s, int64_t to_s, const char *path,
                     struct err *err)
{
    unsigned char pem[PEM_MAX];
    int code = sign(authority, writing, subject, from_s, to_s, pem);

    return code == 0 ? write_new(path, pem, strlen((char *)pem), err)
                     : set_mbedtls_error(err, "cannot write a certificate", code);
}

static void init_certificate(mbedtls_x509write_cert *writing, mbedtls_pk_context *subject,
                             mbedtls_pk_context *issuer)
{
    mbedtls_x509write_crt_init(writing);
    mbedtls_x509write_crt_set_version(writing, MBEDTLS_X509_CRT_VERSION_3);
    mbedtls_x509write_crt_set_md_alg(writing, MBEDTLS_MD_SHA256);
    mbedtls_x509write_crt_set_subject_key(writing, subject);
    mbedtls_x509write_crt_set_issuer_key(writing, issuer);
}

static int make_ca(struct authority *authority, const char *key_path, int64_t now_s,
                   struct err *err)
{
    int rc = make_key(authority, &authority->key, key_path, err);

    if (rc != 0) {
        return rc;
    }
    mbedtls_x509write_cert writing;
    init_certificate(&writing, &authority->key, &authority->key);
    rc = extend_ca(&writing, err);
    if (rc == 0) {
        rc = sign_into(authority, &writing, "CN=kernelcast private authority",
                       now_s - CLOCK_SLACK_S, now_s + CA_SECONDS, authority->path, err);
    }
    mbedtls_x509write_crt_free(&writing);
    return rc;
}

static int read_ca(struct authority *authority, const char *key_path, struct err *err)
{
    struct bytes cert = {0};
    struct bytes key = {0};
    int rc = file_read(&cert, authority->path, FILE_MAX, err);

    rc = rc == 0 ? file_read_private(&key, key_path, FILE_MAX, err) : rc;
    if (rc == 0 && (mbedtls_x509_crt_parse(&authority->cert, cert.data, cert.len + 1) != 0 ||
                    mbedtls_pk_parse_key(&authority->key, key.data, key.len + 1, NULL, 0,
                                         mbedtls_ctr_drbg_random, &authority->random) != 0 ||
                    mbedtls_pk_check_pair(&authority->cert.pk, &authority->key,
                                          mbedtls_ctr_drbg_random, &authority->random) != 0)) {
        rc = err_set(err, ERR_INVALID,
                     "%s and %s are not the two files of an authority; put back those that belong "
                     "together, or name a new folder",
                     authority->path, key_path);
    } else if (rc == 0 && mbedtls_x509_time_is_past(&authority->cert.valid_to)) {
        rc = err_set(err, ERR_INVALID,
                     "the authority %s has expired; name a new folder, and give all servers and "
                     "clients what is made there",
                     authority->path);
    }
    file_wipe(&key);
    bytes_clear(&cert);
    return rc;
}

int authority_open(struct authority **ret, const char *dir, int64_t now_s, bool *ret_made,
                   struct err *err)
{
    struct authority *authority = xcalloc(1, sizeof(*authority));
    char *key_path = xasprintf("%s/ca-key.pem", dir);

    authority->path = xasprintf("%s/ca.pem", dir);
    mbedtls_entropy_init(&authority->entropy);
    mbedtls_ctr_drbg_init(&authority->random);
    mbedtls_x509_crt_init(&authority->cert);
    mbedtls_pk_init(&authority->key);
    int code = tls_library_start();
    code = code == 0 ? mbedtls_ctr_drbg_seed(&authority->random, mbedtls_entropy_func,
                                             &authority->entropy, NULL, 0)
                     : code;
    int rc;
    if (code != 0) {
        rc = set_mbedtls_error(err, "no random bytes are to be had", code);
    } else if (!file_exists(authority->path) && !file_exists(key_path)) {
        rc = make_ca(authority, key_path, now_s, err);
        *ret_made = true;
    } else {
        rc = read_ca(authority, key_path, err);
        *ret_made = false;
    }
    free(key_path);
    if (rc != 0) {
        authority_free(authority);
        return rc;
    }
    *ret = authority;
    return 0;
}

void authority_free(struct authority *authority)
{
    if (authority) {
        mbedtls_pk_free(&authority->key);
        mbedtls_x509_crt_free(&authority->cert);
        mbedtls_ctr_drbg_free(&authority->random);
        mbedtls_entropy_free(&authority->entropy);
        free(authority->path);
        free(authority);
    }
}

static int copy_ca(const struct authority *authority, const char *path, struct err *err)
{
    struct bytes cert = {0};
    int rc = file_read(&cert, authority->path, FILE_MAX, err);

    rc = rc == 0 ? write_new(path, cert.data, cert.len, err) : rc;
    bytes_clear(&cert);
    return rc;
}

// Writes the certificate last: a folder that has a certificate has all three files.
static int issue_into(struct authority *authority, const struct certificate_spec *spec,
                      const char *ca, const char *key_path, const char *path, struct err *err)
{
    char *subject = xasprintf("CN=%s", spec->name);
    mbedtls_pk_context key;

    mbedtls_pk_init(&key);
    mbedtls_x509write_cert writing;
    init_certificate(&writing, &key, &authority->key);
    int rc = extend_leaf(&writing, spec, err);
    rc = rc == 0 ? copy_ca(authority, ca, err) : rc;
    rc = rc == 0 ? make_key(authority, &key, key_path, err) : rc;
    if (rc == 0) {
        rc = sign_into(authority, &writing, subject, spec->from_s, spec->to_s, path, err);
    }
    mbedtls_x509write_crt_free(&writing);
    mbedtls_pk_free(&key);
    free(subject);
    return rc;
}

// Returns whether the certificate has the entry that add_hosts writes for this host.
static bool names_host(const mbedtls_x509_crt *cert, const char *host)
{
    unsigned char address[16];
    size_t len = inet_pton(AF_INET, host, address) == 1    ? 4
                 : inet_pton(AF_INET6, host, address) == 1 ? 16
                                                           : 0;

    for (const mbedtls_x509_sequence *name = &cert->subject_alt_names; name; name = name->next) {
        const char *text = (const char *)name->buf.p;

        if (len > 0
                ? name->buf.len == len && memcmp(text, address, len) == 0
                : name->buf.len == strlen(host) && strncasecmp(text, host, name->buf.len) == 0) {
            return true;
        }
    }
    return false;
}

// Checks that the certificate at path, which is kept, is one that spec could have made.
static int check_kept(const struct authority *authority, const char *path,
                      const struct certificate_spec *spec, struct err *err)
{
    static const char *const advice = "move its folder away to have it made anew";
    struct bytes pem = {0};
    mbedtls_x509_crt cert;
    int rc = file_read(&pem, path, FILE_MAX, err);

    mbedtls_x509_crt_init(&cert);
    uint32_t flags = 0;
    if (rc == 0 && mbedtls_x509_crt_parse(&cert, pem.data, pem.len + 1) != 0) {
        rc = err_set(err, ERR_INVALID, "%s is there and no certificate; %s", path, advice);
    } else if (rc == 0) {
        (void)mbedtls_x509_crt_verify(&cert, (mbedtls_x509_crt *)&authority->cert, NULL, NULL,
                                      &flags, NULL, NULL);
    }
    if ((flags & MBEDTLS_X509_BADCERT_EXPIRED) != 0) {
        rc = err_set(err, ERR_INVALID, "%s is there and has expired; %s", path, advice);
    } else if ((flags & MBEDTLS_X509_BADCERT_NOT_TRUSTED) != 0) {
        rc = err_set(err, ERR_INVALID, "%s is there and not signed by %s; %s", path,
                     authority->path, advice);
    } else if (rc == 0 && usage_flags(&cert, spec->hosts ? TLS_SERVER : TLS_CALLER) != 0) {
        rc = err_set(err, ERR_INVALID, "%s is there and not for a %s; %s", path,
                     spec->hosts ? "server" : "caller", advice);
    }
    for (size_t i = 0; rc == 0 && i < spec->host_count; i++) {
        if (!names_host(&cert, spec->hosts[i])) {
            rc = err_set(err, ERR_INVALID, "%s is there and does not name \"%.80s\"; %s", path,
                         spec->hosts[i], advice);
        }
    }
    mbedtls_x509_crt_free(&cert);
    bytes_clear(&pem);
    return rc;
}

int authority_issue(struct authority *authority, const char *dir,
                    const struct certificate_spec *spec, bool *ret_made, struct err *err)
{
    char *ca = xasprintf("%s/ca.pem", dir);
    char *cert = xasprintf("%s/cert.pem", dir);
    char *key = xasprintf("%s/key.pem", dir);

    *ret_made = !file_exists(cert);
    int rc = 0;
    if (*ret_made) {
        rc = file_make_dirs(dir, err);
        rc = rc == 0 ? issue_into(authority, spec, ca, key, cert, err) : rc;
    } else {
        rc = check_kept(authority, cert, spec, err);
    }
    free(ca);
    free(cert);
    free(key);
    return rc;
}
