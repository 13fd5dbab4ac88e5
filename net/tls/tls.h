// TLS between programs of kernelcast: both sides show a certificate of one authority, the caller
// checks the host's name, TLS 1.2 with ephemeral keys and authenticated ciphers only. Bytes go in
// and come out; knows no sockets and never waits. With mbedTLS.
#ifndef NET_TLS_TLS_H
#define NET_TLS_TLS_H

#include "common/err.h"
#include <stdbool.h>
#include <stddef.h>

struct tls;         // certificates and settings, shared by many connections
struct tls_session; // one connection

enum tls_side { TLS_CALLER, TLS_SERVER };

struct tls_files {
    const char *ca;   // certificates that the other side's must be signed by
    const char *cert; // our own
    const char *key;  // of it; readable by its owner only
};

// Reads the files. ERR_INVALID, ERR_DENIED, ERR_NOT_FOUND name the one that is wrong: also a key
// that is not the certificate's, and a certificate that the authority's do not vouch for now.
MUST_CHECK int tls_create(struct tls **ret, enum tls_side side, const struct tls_files *files,
                          struct err *err);
// Each holder releases it; sessions hold it too. NULL is fine.
struct tls *tls_hold(struct tls *tls);
void tls_release(struct tls *tls);

// host: for a caller, the name or address that the other side's certificate must be for.
struct tls_session *tls_session_create(struct tls *tls, const char *host);
void tls_session_free(struct tls_session *session); // NULL is fine

// Where bytes of the connection may be written, at least 1, and that so many were.
char *tls_session_room(struct tls_session *session, size_t *ret_len);
void tls_session_filled(struct tls_session *session, size_t len);

// The list of net/tls/handshake.c, one for all sessions of the same struct tls.
struct handshake;
struct handshake **tls_session_steps(struct tls_session *session);

// Goes on with the handshake as far as what has arrived allows. Nothing may be read or written
// before *ret_done. ERR_DENIED when one side does not accept the other's certificate, ERR_PROTOCOL
// when it is no TLS, or none that is good enough.
MUST_CHECK int tls_session_greet(struct tls_session *session, bool *ret_done, struct err *err);
// Decrypts; *ret_len 0: nothing whole is there. ERR_UNREACHABLE when the other side has closed it.
MUST_CHECK int tls_session_read(struct tls_session *session, void *to, size_t len, size_t *ret_len,
                                struct err *err);
// Encrypts all of it.
MUST_CHECK int tls_session_write(struct tls_session *session, const void *data, size_t len,
                                 struct err *err);
// What is to be sent, malloc'd; false when there is nothing. After an error too: the reason that
// the other side is told.
bool tls_session_take(struct tls_session *session, char **ret, size_t *ret_len);

#endif
