// Text that comes from outside (candidates, models, compilers, peers, files), made fit to be shown.
// A terminal obeys what it is sent: with control characters a text can hide what stands before it,
// change the title, or answer as if somebody had typed. So nothing from outside reaches a terminal,
// a log or a page but through a function of this file or through one that escapes as much.
//
// Printable is a character of valid UTF-8 that is no control character (C0, DEL, C1), none that
// changes the direction of writing (U+061C, U+200E, U+200F, U+202A to U+202E, U+2066 to U+2069),
// and no separator of lines or paragraphs (U+2028, U+2029).
#ifndef COMMON_PRINTABLE_H
#define COMMON_PRINTABLE_H

#include "common/err.h"
#include "common/strbuf.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

// The length of the printable character at text, which has `left` bytes (at least 1): 1 to 4. 0
// when there is none. Newlines and tabs are none.
size_t printable_length(const unsigned char *text, size_t left);

// ERR_INVALID when the text has anything that is not printable: it cannot be a name. `what` begins
// the sentence: "the name of a search".
MUST_CHECK int printable_check(const char *what, const char *text, struct err *err);

// Writes the character at text, or if it is not printable its first byte as \n, \t, \r or \xNN, to
// out, and returns how many bytes that takes. *ret_read is how many bytes of text it stands for.
size_t printable_put(char out[static 4], const unsigned char *text, size_t left, size_t *ret_read);
// Appends the text as one line, with everything that is not printable escaped like that.
void printable_add(struct strbuf *out, const char *text, size_t len);
// Appends the text with its newlines and tabs, and everything else that is not printable escaped.
void printable_add_lines(struct strbuf *out, const char *text, size_t len);
// Appends the text of a JSON value: what is not printable in its strings becomes \uNNNN. Newlines,
// which stand only between values, stay.
void printable_add_json(struct strbuf *out, const char *json, size_t len);
// Replaces by '?', in place, every byte of what is not printable, except newlines and tabs.
void printable_clean(char *text, size_t len);

// Prints like fprintf, for people: newlines at the beginning and at the end of the format stay, and
// everything between them becomes one line. So a value cannot begin a line of its own. A format
// with a newline in its middle is a defect and is printed as one line too.
void printable_printf(FILE *file, const char *format, ...) __attribute__((format(printf, 2, 3)));
// Prints a text of several lines, with what is not printable escaped.
void printable_print_lines(FILE *file, const char *text);

#endif
