// What a caller of tls:// urls presents and checks: certificates and a token, read from files.
// Loaded by the session when the first tls:// url needs them.
#ifndef CLIENT_CREDENTIALS_H
#define CLIENT_CREDENTIALS_H

#include "common/err.h"
#include "net/tls/tls.h"

// The path of a file of the user's configuration, in $XDG_CONFIG_HOME/kernelcast or
// ~/.config/kernelcast; malloc'd.
char *credentials_config_path(const char *name);

// Names of the files. NULL stands for the name in the environment (KCAST_TLS_CA, KCAST_TLS_CERT,
// KCAST_TLS_KEY, KCAST_TOKEN_FILE), else for ca.pem, cert.pem, key.pem and token in
// $XDG_CONFIG_HOME/kernelcast or ~/.config/kernelcast.
struct credential_files {
    const char *ca;
    const char *cert;
    const char *key;
    const char *token;
};

struct credentials {
    struct tls *tls; // NULL when not loaded
    char *token;     // NULL when there is no token and no file was named
};

// Reads the files; *ret is the caller's. ERR_NOT_FOUND, ERR_DENIED (other users may read the file)
// and ERR_INVALID name the file.
MUST_CHECK int credentials_load(struct credentials *ret, const struct credential_files *files,
                                struct err *err);
// Wipes the token and frees everything. A zeroed struct counts as released.
void credentials_release(struct credentials *credentials);

#endif
