// Text for people, broken between words at the width of their terminal. Called for --help and for
// lines of progress. Texts are UTF-8 whose characters are one column wide each, as the texts of
// this project are.
#ifndef COMMON_WRAP_H
#define COMMON_WRAP_H

#include "common/strbuf.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#define WRAP_WIDTH_DEFAULT 80

// The columns to use on the file: $COLUMNS when it is a number from 20 on, otherwise those of the
// terminal that it is, otherwise WRAP_WIDTH_DEFAULT.
size_t wrap_width(FILE *out);

// How many columns the text takes.
size_t wrap_columns(const char *text);

// Adds the text, broken so that no line has more than `width` columns unless one word has, and with
// `indent` blanks before each line but the first, which begins in column `at`. A newline in the
// text ends a line. No newline is added at the end.
void wrap_add(struct strbuf *out, const char *text, size_t at, size_t indent, size_t width);

// Prints a text of several lines, each wrapped at the width of the file.
void wrap_print(FILE *out, const char *text);

// Prints the left text, and the right one from column `indent` on, wrapped at `width`. The right
// one begins on the next line where the left one leaves no room, and near the left edge where
// `width` leaves none for two columns. Ends with a newline.
void wrap_print_columns(FILE *out, const char *left, size_t indent, const char *right,
                        size_t width);

#endif
