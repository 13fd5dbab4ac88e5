// The tokens file: who may call a server, in which role and until when. `kcast token` changes the
// file and servers read it (net/auth/identity.h). This module knows no connections.
//
// A token is the text "kc1.TENANT.SECRET", where SECRET is 32 random bytes in hexadecimal. The file
// holds only salted SHA-256 digests of secrets. A fast hash is enough because a random secret
// cannot be guessed. Each tenant has at most one token.
//
// A line of the file is "TENANT ROLE CREATED EXPIRES SALT DIGEST", with one blank between fields.
// Times are written 2026-01-31T23:59:59Z, and EXPIRES is "-" when the token never expires. Empty
// lines and lines that begin with # are ignored.
#ifndef NET_AUTH_TOKENS_H
#define NET_AUTH_TOKENS_H

#include "common/digest.h"
#include "common/strbuf.h"
#include "net/auth/caller.h"
#include <stdint.h>

#define TOKEN_SALT_LEN 16  // bytes
#define TOKEN_TEXT_MAX 192 // bytes of a token
#define TOKENS_MAX 1024    // tokens in one file
#define TOKENS_FILE_MAX ((size_t)1 << 20)

// One line of the file.
struct token {
    char tenant[TENANT_MAX + 1];
    enum caller_role role;
    int64_t created_s; // seconds since 1970
    int64_t expires_s; // seconds since 1970; 0: never
    unsigned char salt[TOKEN_SALT_LEN];
    struct digest digest; // SHA-256 of the salt and the secret in hexadecimal
};

struct tokens;

// Makes an empty set, to be freed by the caller.
struct tokens *tokens_create(void);
void tokens_free(struct tokens *tokens); // NULL is fine
// Parses the text of a file. name is the file's name for errors: ERR_INVALID names the file, the
// line and what is wrong with it. The caller frees *ret.
MUST_CHECK int tokens_parse(struct tokens **ret, const char *text, const char *name,
                            struct err *err);
// Reads and parses a file. ERR_DENIED when anybody but its owner may read it, and, unless it may be
// of_anybody, when its owner is neither root nor the user who runs the program.
MUST_CHECK int tokens_read(struct tokens **ret, const char *path, bool of_anybody, struct err *err);
// Appends the text of the file to out.
void tokens_write(const struct tokens *tokens, struct strbuf *out);

size_t tokens_count(const struct tokens *tokens);
const struct token *tokens_at(const struct tokens *tokens, size_t index);

// Makes a token for tenant; the times are seconds since 1970. *ret_text is the token itself, which
// the caller wipes and frees. ERR_CONFLICT when the tenant has one already, ERR_LIMIT when there
// are TOKENS_MAX.
MUST_CHECK int tokens_add(struct tokens *tokens, const char *tenant, enum caller_role role,
                          int64_t now_s, int64_t expires_s, char **ret_text, struct err *err);
// ERR_NOT_FOUND when the tenant has no token.
MUST_CHECK int tokens_remove(struct tokens *tokens, const char *tenant, struct err *err);

// Finds the line of a token whose secret is right and which has not expired at now_s. ERR_DENIED
// gives the reason and never the token. The time that this takes does not depend on where a wrong
// secret differs, nor on whether the tenant is known.
MUST_CHECK int tokens_check(const struct tokens *tokens, const char *text, int64_t now_s,
                            const struct token **ret, struct err *err);
// Returns the line with this tenant and digest, also when it has expired; NULL when there is none.
const struct token *tokens_find(const struct tokens *tokens, const char *tenant,
                                const struct digest *digest);

// Writes a time as "2026-01-31T23:59:59Z". Times after the year 9999 become its last second.
#define TOKEN_TIME_LEN 20
void token_time(int64_t seconds, char out[static TOKEN_TIME_LEN + 1]);

#endif
