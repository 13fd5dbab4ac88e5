// TLS between programs of kernelcast, by mbedTLS. Both sides show a certificate that one authority
// has signed, and the caller checks the name of the host. TLS 1.3 (where mbedTLS is
// 3.6) or 1.2 with ephemeral keys and authenticated ciphers are the only versions. A session turns
// bytes into bytes: it knows no sockets and never waits. net/rpc/stream.c moves the bytes.
#ifndef NET_TLS_TLS_H
#define NET_TLS_TLS_H

#include "common/err.h"
#include <stdbool.h>
#include <stddef.h>

struct tls;         // certificates and settings, shared by many connections
struct tls_session; // one connection

enum tls_side { TLS_CALLER, TLS_SERVER };

struct tls_files {
    const char *ca;   // certificates of the authorities that must have signed the other side's
    const char *cert; // our own certificate
    const char *key;  // the key of cert; readable by its owner only
};

// Reads the files; the caller releases *ret. ERR_INVALID, ERR_DENIED and ERR_NOT_FOUND name the
// file that is wrong. A key of another certificate, and an own certificate that the authority has
// not signed, that is not valid now or that is not for this side, are ERR_INVALID too.
MUST_CHECK int tls_create(struct tls **ret, enum tls_side side, const struct tls_files *files,
                          struct err *err);
// Adds a holder. Each holder releases it once; a session is a holder too.
struct tls *tls_hold(struct tls *tls);
void tls_release(struct tls *tls); // NULL is fine

// Makes a session, to be freed by the caller. host is for callers: the name or address that the
// other side's certificate must have. A server gives NULL.
struct tls_session *tls_session_create(struct tls *tls, const char *host);
void tls_session_free(struct tls_session *session); // NULL is fine

// Received bytes go in two steps: write them to the address that tls_session_room gives, which has
// room for *ret_len bytes, at least 1; then tell tls_session_filled how many they were.
char *tls_session_room(struct tls_session *session, size_t *ret_len);
void tls_session_filled(struct tls_session *session, size_t len);

// The head of the list that net/tls/handshake.c keeps, one for all sessions of a struct tls.
struct handshake;
struct handshake **tls_session_steps(struct tls_session *session);

// Goes on with the handshake as far as the received bytes allow. *ret_done tells whether it is
// complete; before that nothing may be read or written. ERR_DENIED when one side does not accept
// the certificate of the other, ERR_PROTOCOL when the bytes are not TLS or not of a version and
// cipher that is good enough.
MUST_CHECK int tls_session_handshake(struct tls_session *session, bool *ret_done, struct err *err);
// Decrypts at most len bytes. *ret_len is 0 when no whole record has arrived. ERR_UNREACHABLE when
// the other side has closed the session.
MUST_CHECK int tls_session_read(struct tls_session *session, void *to, size_t len, size_t *ret_len,
                                struct err *err);
// Encrypts all of data.
MUST_CHECK int tls_session_write(struct tls_session *session, const void *data, size_t len,
                                 struct err *err);
// Gives the bytes that are to be sent, in malloc'd memory that the caller frees. Returns false when
// there are none. After an error they hold the alert that tells the other side the reason.
bool tls_session_take_output(struct tls_session *session, char **ret, size_t *ret_len);

#endif
