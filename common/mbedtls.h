// mbedTLS 2.28 and 3.6 as one: whoever uses mbedTLS includes this and writes what 3.6 knows. With
// 2.28 those names stand for what it has instead. This is the only place where the versions are
// told apart.
#ifndef COMMON_MBEDTLS_H
#define COMMON_MBEDTLS_H

#include <mbedtls/pk.h>
#include <mbedtls/sha256.h>
#include <mbedtls/ssl.h>
#include <mbedtls/version.h>
#include <mbedtls/x509_crt.h>
#include <stdint.h>

#if MBEDTLS_VERSION_NUMBER >= 0x03060100

#include <psa/crypto.h>

typedef uint16_t tls_group; // names a group for key exchange
#define TLS_1_3_SUITES                                                                             \
    MBEDTLS_TLS1_3_CHACHA20_POLY1305_SHA256, MBEDTLS_TLS1_3_AES_128_GCM_SHA256,                    \
        MBEDTLS_TLS1_3_AES_256_GCM_SHA384,

// TLS 1.3 computes by mbedTLS's second interface, which has to be started. Any number of times and
// in any thread. Returns 0 on success.
static inline int tls_library_start(void)
{
    return psa_crypto_init() == PSA_SUCCESS ? 0 : MBEDTLS_ERR_SSL_INTERNAL_ERROR;
}

// No resumption: every connection has keys of its own.
static inline void tls_conf_ephemeral(mbedtls_ssl_config *config)
{
    mbedtls_ssl_conf_tls13_key_exchange_modes(config,
                                              MBEDTLS_SSL_TLS1_3_KEY_EXCHANGE_MODE_EPHEMERAL);
}

#elif MBEDTLS_VERSION_MAJOR == 2 && MBEDTLS_VERSION_MINOR == 28

// Members of structs are hidden since 3.0.
#define MBEDTLS_PRIVATE(member) member
#define mbedtls_x509_crt_get_ca_istrue(cert) ((cert)->ca_istrue)
#define mbedtls_x509_crt_has_ext_type(cert, type) ((cert)->ext_types & (type))

// Functions that can fail lost their ending.
#define mbedtls_sha256 mbedtls_sha256_ret
#define mbedtls_sha256_starts mbedtls_sha256_starts_ret
#define mbedtls_sha256_update mbedtls_sha256_update_ret
#define mbedtls_sha256_finish mbedtls_sha256_finish_ret

// Those that compute with a private key got random numbers to hide it. A name in parentheses is the
// function, not the macro.
#define mbedtls_pk_parse_key(key, data, len, password, password_len, random, owner)                \
    ((void)(random), (void)(owner), (mbedtls_pk_parse_key)(key, data, len, password, password_len))
#define mbedtls_pk_parse_keyfile(key, path, password, random, owner)                               \
    ((void)(random), (void)(owner), (mbedtls_pk_parse_keyfile)(key, path, password))
#define mbedtls_pk_check_pair(public, private, random, owner)                                      \
    ((void)(random), (void)(owner), (mbedtls_pk_check_pair)(public, private))

// Versions and groups have the numbers of the protocol. There is no TLS 1.3.
#define MBEDTLS_SSL_VERSION_TLS1_2 MBEDTLS_SSL_MINOR_VERSION_3
#define mbedtls_ssl_conf_min_tls_version(config, version)                                          \
    mbedtls_ssl_conf_min_version(config, MBEDTLS_SSL_MAJOR_VERSION_3, version)
#define mbedtls_ssl_conf_max_tls_version(config, version)                                          \
    mbedtls_ssl_conf_max_version(config, MBEDTLS_SSL_MAJOR_VERSION_3, version)
#define MBEDTLS_SSL_IANA_TLS_GROUP_NONE MBEDTLS_ECP_DP_NONE
#define MBEDTLS_SSL_IANA_TLS_GROUP_SECP256R1 MBEDTLS_ECP_DP_SECP256R1
#define MBEDTLS_SSL_IANA_TLS_GROUP_SECP384R1 MBEDTLS_ECP_DP_SECP384R1
#define MBEDTLS_SSL_IANA_TLS_GROUP_SECP521R1 MBEDTLS_ECP_DP_SECP521R1
#define MBEDTLS_SSL_IANA_TLS_GROUP_X25519 MBEDTLS_ECP_DP_CURVE25519
#define mbedtls_ssl_conf_groups mbedtls_ssl_conf_curves
typedef mbedtls_ecp_group_id tls_group;
#define TLS_1_3_SUITES

// Reasons of failures are sorted by the alert that they cause.
#define MBEDTLS_ERR_SSL_BAD_CERTIFICATE MBEDTLS_ERR_SSL_BAD_HS_CERTIFICATE
#define MBEDTLS_ERR_SSL_DECODE_ERROR MBEDTLS_ERR_SSL_BAD_HS_CLIENT_HELLO

// A certificate's number is given as bytes, the most significant one first.
static inline int mbedtls_x509write_crt_set_serial_raw(mbedtls_x509write_cert *writing,
                                                       const unsigned char *number, size_t len)
{
    mbedtls_mpi serial;

    mbedtls_mpi_init(&serial);
    int code = mbedtls_mpi_read_binary(&serial, number, len);
    code = code == 0 ? mbedtls_x509write_crt_set_serial(writing, &serial) : code;
    mbedtls_mpi_free(&serial);
    return code;
}

static inline int tls_library_start(void)
{
    return 0;
}

static inline void tls_conf_ephemeral(mbedtls_ssl_config *config)
{
    (void)config; // the cipher suites see to it
}

#else
#error "mbedTLS must be 2.28, or 3.6.1 or a later 3"
#endif

#endif
