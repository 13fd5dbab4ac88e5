#include "net/tls/usage.h"

#include <mbedtls/oid.h>
#include <stdbool.h>
#include <string.h>

// Whether the extended key usages have this very one. mbedTLS would take anyExtendedKeyUsage too.
static bool has_purpose(const mbedtls_x509_crt *cert, const char *oid)
{
    size_t len = strlen(oid);

    if (!mbedtls_x509_crt_has_ext_type(cert, MBEDTLS_X509_EXT_EXTENDED_KEY_USAGE)) {
        return false;
    }
    for (const mbedtls_x509_sequence *use = &cert->ext_key_usage; use; use = use->next) {
        if (use->buf.len == len && memcmp(use->buf.p, oid, len) == 0) {
            return true;
        }
    }
    return false;
}

uint32_t usage_flags(const mbedtls_x509_crt *cert, enum tls_side shown_by)
{
    uint32_t flags = 0;

    if (mbedtls_x509_crt_get_ca_istrue(cert) > 0) {
        flags |= MBEDTLS_X509_BADCERT_OTHER;
    }
    if (!has_purpose(cert,
                     shown_by == TLS_SERVER ? MBEDTLS_OID_SERVER_AUTH : MBEDTLS_OID_CLIENT_AUTH)) {
        flags |= MBEDTLS_X509_BADCERT_EXT_KEY_USAGE;
    }
    if (!mbedtls_x509_crt_has_ext_type(cert, MBEDTLS_X509_EXT_KEY_USAGE) ||
        mbedtls_x509_crt_check_key_usage(cert, MBEDTLS_X509_KU_DIGITAL_SIGNATURE) != 0) {
        flags |= MBEDTLS_X509_BADCERT_KEY_USAGE;
    }
    return flags;
}

const char *usage_reason(uint32_t flags)
{
    if (flags & MBEDTLS_X509_BADCERT_OTHER) {
        return "is an authority's, which only signs others";
    }
    if (flags & MBEDTLS_X509_BADCERT_EXT_KEY_USAGE) {
        return "is not for this side of a connection (its extended key usage must have serverAuth "
               "for a server, clientAuth for a caller)";
    }
    if (flags & MBEDTLS_X509_BADCERT_KEY_USAGE) {
        return "is not for connections (its key usage must have digitalSignature)";
    }
    return NULL;
}
