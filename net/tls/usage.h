// What a certificate may be shown for. Included by tls.c and authority.c only.
#ifndef NET_TLS_USAGE_H
#define NET_TLS_USAGE_H

#include "common/mbedtls.h"
#include "net/tls/tls.h"
#include <stdint.h>

// Returns 0 when the certificate may be shown by this side of a connection, else what is wrong with
// it: one or several of the flags MBEDTLS_X509_BADCERT_…. It must say itself what it is for: the
// extended key usage serverAuth or clientAuth, and the key usage digitalSignature. A certificate
// without these extensions, one for any purpose, and an authority's are refused. The library only
// compares what a certificate has.
uint32_t usage_flags(const mbedtls_x509_crt *cert, enum tls_side shown_by);

// Returns what a certificate with these flags is or lacks, as the end of the sentence "This
// certificate …"; NULL when none of the flags is about its usage.
const char *usage_reason(uint32_t flags);

#endif
