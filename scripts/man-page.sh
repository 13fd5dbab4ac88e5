#!/usr/bin/env bash
# A manual page from a program's --help, on stdout.
#   man-page.sh PROGRAM 'what it does, in half a sentence'
set -eu
program=$1 what=$2
name=$(basename "$program")
version=$("$program" --version | sed 's/.* //')
# roff takes a leading dot or quote for a command and a backslash for an escape; options are not hyphenated words.
body() { "$program" --help | sed -e 's/\\/\\e/g' -e 's/^\([.'"'"']\)/\\\&\1/' -e 's/-/\\-/g'; }
printf '.TH %s 1 "" "kernelcast %s" "kernelcast"\n' "${name^^}" "$version"
printf '.SH NAME\n%s \\- %s\n' "${name//-/\\-}" "$what"
printf '.SH SYNOPSIS\n.B %s\n[\\fIoptions\\fR]\n' "${name//-/\\-}"
printf '.SH DESCRIPTION\n.nf\n'
body
printf '.fi\n.SH SEE ALSO\nThe documents in /usr/share/doc/kernelcast.\n'
