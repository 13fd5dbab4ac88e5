// Validity of UTF-8 text, for readers of messages and of the log.
#ifndef COMMON_UTF8_H
#define COMMON_UTF8_H

#include <stddef.h>

// The length of the valid UTF-8 character at text, which has `left` bytes (at least 1): 1 to 4. 0
// when it is not valid: cut off, a surrogate, longer than necessary, or beyond U+10FFFF. NUL is a
// character.
size_t utf8_length(const unsigned char *text, size_t left);

#endif
