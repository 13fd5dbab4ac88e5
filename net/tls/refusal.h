// Why a connection is refused: codes and flags of mbedTLS as sentences and as alerts. Included by
// files of this folder only.
#ifndef NET_TLS_REFUSAL_H
#define NET_TLS_REFUSAL_H

#include "common/err.h"
#include "common/mbedtls.h"
#include <stddef.h>
#include <stdint.h>

// Writes what mbedTLS says of its code to buf, and returns buf.
const char *refusal_of_code(int code, char *buf, size_t size);

// Returns what is wrong with a certificate that has these flags MBEDTLS_X509_BADCERT_…, as the end
// of the sentence "This certificate …".
const char *refusal_of_flags(uint32_t flags);
// Sets the error for the other side's certificate, or for its absence: ERR_DENIED.
int refusal_set_flags(uint32_t flags, struct err *err);
// Returns the number of the alert by which the other side is told.
unsigned char refusal_alert(uint32_t flags);

// Sets the error for an alert of the other side: ERR_DENIED when it is about our certificate, else
// ERR_PROTOCOL.
int refusal_set_alert(unsigned number, struct err *err);
// Sets the error for a function of mbedTLS that returned code for this connection: ERR_DENIED when
// one side does not accept the other's certificate, ERR_UNREACHABLE when the other side has closed
// it, else ERR_PROTOCOL.
int refusal_set(const mbedtls_ssl_context *ssl, int code, struct err *err);

#endif
