#include "net/tls/refusal.h"

#include "net/tls/usage.h"
#include <mbedtls/error.h>

const char *refusal_of_code(int code, char *buf, size_t size)
{
    mbedtls_strerror(code, buf, size);
    return buf;
}

const char *refusal_of_flags(uint32_t flags)
{
    if (flags & MBEDTLS_X509_BADCERT_EXPIRED) {
        return "has expired";
    }
    if (flags & MBEDTLS_X509_BADCERT_FUTURE) {
        return "is not valid yet (is the clock right?)";
    }
    if (flags & MBEDTLS_X509_BADCERT_MISSING) {
        return "is missing";
    }
    if (flags & MBEDTLS_X509_BADCERT_NOT_TRUSTED) {
        return "is not signed by our authority";
    }
    const char *usage = usage_reason(flags);
    if (usage) {
        return usage;
    }
    return flags & MBEDTLS_X509_BADCERT_CN_MISMATCH ? "is for another host" : "is not acceptable";
}

int refusal_set_flags(uint32_t flags, struct err *err)
{
    return flags & MBEDTLS_X509_BADCERT_MISSING
               ? err_set(err, ERR_DENIED, "it shows no certificate")
               : err_set(err, ERR_DENIED, "its certificate %s", refusal_of_flags(flags));
}

unsigned char refusal_alert(uint32_t flags)
{
    if (flags & MBEDTLS_X509_BADCERT_MISSING) {
        return MBEDTLS_SSL_ALERT_MSG_NO_CERT;
    }
    if (flags & MBEDTLS_X509_BADCERT_EXPIRED) {
        return MBEDTLS_SSL_ALERT_MSG_CERT_EXPIRED;
    }
    if (flags & MBEDTLS_X509_BADCERT_NOT_TRUSTED) {
        return MBEDTLS_SSL_ALERT_MSG_UNKNOWN_CA;
    }
    return usage_reason(flags) ? MBEDTLS_SSL_ALERT_MSG_UNSUPPORTED_CERT
                               : MBEDTLS_SSL_ALERT_MSG_CERT_UNKNOWN;
}

int refusal_set_alert(unsigned number, struct err *err)
{
    switch (number) {
    case MBEDTLS_SSL_ALERT_MSG_CERT_EXPIRED:
        return err_set(err, ERR_DENIED, "it says that our certificate has expired");
    case MBEDTLS_SSL_ALERT_MSG_UNKNOWN_CA:
        return err_set(err, ERR_DENIED, "it says that our certificate is of another authority");
    case MBEDTLS_SSL_ALERT_MSG_NO_CERT:
    case MBEDTLS_SSL_ALERT_MSG_BAD_CERT:
    case MBEDTLS_SSL_ALERT_MSG_UNSUPPORTED_CERT:
    case MBEDTLS_SSL_ALERT_MSG_CERT_REVOKED:
    case MBEDTLS_SSL_ALERT_MSG_CERT_UNKNOWN:
    case MBEDTLS_SSL_ALERT_MSG_ACCESS_DENIED:
        return err_set(err, ERR_DENIED, "it does not accept our certificate (alert %u)", number);
    default:
        return err_set(err, ERR_PROTOCOL, "it refuses this TLS (alert %u)", number);
    }
}

// The number of the other side's alert, which mbedTLS leaves in its receive buffer.
static unsigned alert_of(const mbedtls_ssl_context *ssl)
{
    const unsigned char *message = ssl->MBEDTLS_PRIVATE(in_msg);

    return message ? message[1] : 0;
}

int refusal_set(const mbedtls_ssl_context *ssl, int code, struct err *err)
{
    char text[128];

    switch (code) {
    case MBEDTLS_ERR_X509_CERT_VERIFY_FAILED:
        return refusal_set_flags(mbedtls_ssl_get_verify_result(ssl), err);
    case MBEDTLS_ERR_SSL_BAD_CERTIFICATE: // among others, a wrong extended key usage
        return err_set(err, ERR_DENIED, "its certificate is not for this side of a connection");
    case MBEDTLS_ERR_SSL_FATAL_ALERT_MESSAGE:
        return refusal_set_alert(alert_of(ssl), err);
    case MBEDTLS_ERR_SSL_PEER_CLOSE_NOTIFY:
        return err_set(err, ERR_UNREACHABLE, "the other side closed it");
    case MBEDTLS_ERR_SSL_INVALID_RECORD:
    case MBEDTLS_ERR_SSL_DECODE_ERROR:
        return err_set(err, ERR_PROTOCOL, "what came is no TLS");
    default:
        return err_set(err, ERR_PROTOCOL, "TLS failed: %s",
                       refusal_of_code(code, text, sizeof(text)));
    }
}
