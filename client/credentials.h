// What a caller of tls:// shows and checks: certificates and a token, from files.
#ifndef CLIENT_CREDENTIALS_H
#define CLIENT_CREDENTIALS_H

#include "common/err.h"
#include "net/tls/tls.h"

// Names of files; NULL: from the environment (KCAST_TLS_CA, KCAST_TLS_CERT, KCAST_TLS_KEY,
// KCAST_TOKEN_FILE), else ca.pem, cert.pem, key.pem and token in $XDG_CONFIG_HOME/kernelcast or
// ~/.config/kernelcast.
struct credential_files {
    const char *ca;
    const char *cert;
    const char *key;
    const char *token;
};

struct credentials {
    struct tls *tls; // NULL: not loaded
    char *token;     // NULL: there is none, and its name was not given
};

// ERR_NOT_FOUND, ERR_DENIED (others may read it) and ERR_INVALID name the file.
MUST_CHECK int credentials_load(struct credentials *ret, const struct credential_files *files,
                                struct err *err);
void credentials_release(struct credentials *credentials);

#endif
