#!/usr/bin/env bash
# `make install`: programs run from where they are put, and manual pages, completion, units and sample configuration say what the
# programs' --help says: every command has a page, and every option stands on its page and in each shell's completion.
set -u
bin=${KCAST_BIN:?} root=${KCAST_ROOT:?}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
bad=0
complain() { echo "$*"; bad=1; }
cd "$root" || exit 1
export COLUMNS=100000
unset KCAST_PROBLEMS || :

DESTDIR=$work/root PREFIX=/usr/local SYSCONFDIR=/etc scripts/install.sh "$bin" >"$work/log" 2>&1 || { cat "$work/log"; exit 1; }
to=$work/root/usr/local
"$to/bin/kcast" --version >/dev/null && "$to/libexec/kernelcast/kcast-exec" --version >/dev/null && "$to/bin/kcast" help replay >/dev/null ||
    complain "what is installed does not run"
"$to/bin/kcast" problem list | grep -q sgemm || complain "the problems are not found"

# ---- pages: NAME PROGRAM [WORD…] ----
check_page() {
    local name=$1 page=$to/share/man/man1/$1.1.gz option
    shift
    [ -e "$page" ] || { complain "$name has no manual page"; return; }
    gzip -dc "$page" >"$work/page"
    grep -q '^\.SH SYNOPSIS' "$work/page" || complain "the page of $name has no synopsis"
    ! command -v mandoc >/dev/null || mandoc -T lint -W error "$work/page" || complain "the page of $name is not well made"
    "$@" --help </dev/null >"$work/help"
    while read -r option; do
        grep -qF -- "${option//-/\\-}" "$work/page" || complain "the page of $name does not say $option"
        for shell in bash zsh fish; do
            case $shell in fish) grep -q -- " -l ${option#--} " "$work/$shell" ;; *) grep -qF -- "$option" "$work/$shell" ;; esac ||
                complain "$shell does not complete $option of $name"
        done
    done < <(grep -oE '^ +(-[A-Za-z], )?--[a-z-]+' "$work/help" | grep -oE -- '--[a-z-]+')
}
cp "$to/share/bash-completion/completions/kcast" "$work/bash"
cp "$to/share/zsh/site-functions/_kcast" "$work/zsh"
cp "$to/share/fish/vendor_completions.d/kcast.fish" "$work/fish"
commands=$("$bin/kcast" help | sed -n '/^commands:/,/^$/s/^  \([a-z]*\( [a-z]*\)\{0,1\}\)  .*/\1/p')
[ "$(wc -l <<<"$commands")" -ge 30 ] || complain "the list of commands cannot be read: $commands"
check_page kcast "$bin/kcast"
while read -r command; do
    # shellcheck disable=SC2086
    check_page "kcast-${command// /-}" "$bin/kcast" $command
done <<<"$commands"
for program in kcastd kcast-worker kcast-exec; do check_page $program "$bin/$program"; done
[ "$(ls "$to/share/man/man1" | wc -l)" -eq $(($(wc -l <<<"$commands") + 4)) ] || complain "there are pages of commands that do not exist"

# ---- completion ----
bash -n "$work/bash" || complain "bash cannot read its completion"
! command -v zsh >/dev/null || zsh -n "$work/zsh" || complain "zsh cannot read its completion"
! command -v fish >/dev/null || fish -n "$work/fish" || complain "fish cannot read its completion"
# completes 'what becomes of it' 'what is typed' : by an interactive bash on a terminal, which divides words at = and : as well.
completes() {
    local got
    got=$(cd "$root" && { # ^A and ^E: the beginning and the end of the line
        printf 'source %q\n' "$work/bash"
        printf "%s\t\001echo '<\005>'\nexit\n" "$2"
    } | PATH=$to/bin:$to/libexec/kernelcast:$PATH INPUTRC=/dev/null TERM=dumb COLUMNS=1000 PS1= script -qec 'bash --noprofile --norc -i' /dev/null | tr -d '\r\a' | sed -n "s/^<\(.*\)>\$/\1/p" | tail -1)
    [ "${got% }" = "$1" ] || complain "\"$2\" is completed to \"$got\" and not to \"$1\""
}
# offers 'what is offered' WORD…: the last word is the one that is being typed
offers() {
    local expected=$1 got
    shift
    got=$(cd "$root" && bash -c '. "$1"; shift; compopt() { :; }; COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)) COMP_LINE="$*"; _kernelcast; echo "${COMPREPLY[*]}"' _ "$work/bash" "$@")
    [ "$got" = "$expected" ] || complain "\"$*\" offers \"$got\" and not \"$expected\""
}
completes 'kcast search' 'kcast sea'
completes 'kcast --pool tcp://x:1 measure' 'kcast --pool tcp://x:1 measu'
completes 'kcast --json --pool=tls://x:1,tcp://y:2 measure' 'kcast --json --pool=tls://x:1,tcp://y:2 measu'
completes 'kcast --pool tcp://x:1 search --strategy=islands' 'kcast --pool tcp://x:1 search --strategy=is'
completes 'kcast search scan --run=README.md' 'kcast search scan --run=README'
completes 'kcast search cpu/conv2d' 'kcast search cpu/con'
completes 'kcast measure scan README.md' 'kcast measure scan READM'
completes 'kcast search -g tunable' 'kcast search -g tun'
completes 'kcast search --generator=pool:README.md' 'kcast search --generator=pool:READM'
completes 'kcast --pool file:README.md' 'kcast --pool file:READM'
completes 'kcast --pool=tcp://x:1,file:README.md' 'kcast --pool=tcp://x:1,file:READM'
completes 'kcastd --sandbox=off' 'kcastd --sandbox=of'
offers search kcast sea
offers 'list check new' kcast problem ''
offers set kcast budget s
offers --strategy= kcast search --strat
offers islands kcast search --strategy is
offers islands kcast search --strategy = is
offers 'on off' kcast --sandbox = o
offers measure kcast --pool tcp://x:1 measu
offers --weight= kcast budget set --wei
offers 'add revoke list' kcast help token ''
offers 'text json' kcastd --log-format ''
offers probe kcast-exec pro
offers README.md kcast measure README
offers --pool= kcast measure --poo
offers 'tcp:// tls:// dns:// dns+tls:// file:' kcast --pool ''
offers '' kcast --pool tcp://x:
offers 'tunable llm exec: pool:' kcast search --generator ''
offers README.md kcast budget tenant READ
if command -v fish >/dev/null; then
    while IFS='|' read -r line expected; do
        got=$(cd "$root" && PATH=$to/bin:$PATH fish --no-config -c "source $work/fish; complete -C '$line'" | cut -f1 | tr '\n' ' ')
        [ "${got% }" = "$expected" ] || complain "fish completes \"$line\" to \"$got\" and not to \"$expected\""
    done <<'LINES'
kcast --pool tcp://x:1 sear|search
kcast search --strategy isl|islands
kcast search --strategy islands cpu/con|cpu/conv2d
kcast help token |add list revoke
kcast -q measure scan READM|README.md
LINES
fi

# ---- units and configuration ----
grep -qx 'ExecStart=/usr/local/bin/kcastd --config=/etc/kernelcast/kcastd.ini' "$to/lib/systemd/system/kcastd.service" || complain "kcastd's unit starts something else"
grep -q '^ExecStart=/usr/local/bin/kcast-worker ' "$to/lib/systemd/system/kcast-worker.service" || complain "kcast-worker's unit starts something else"
for file in lib/sysusers.d/kernelcast.conf lib/tmpfiles.d/kernelcast.conf share/doc/kernelcast/examples/config share/doc/kernelcast/examples/propose.py; do
    [ -s "$to/$file" ] || complain "$file is not installed"
done
"$to/bin/kcastd" --config "$work/root/etc/kernelcast/kcastd.ini" --version >/dev/null || complain "kcastd does not know its sample configuration"
mkdir -p "$work/home/.config/kernelcast"
cp "$to/share/doc/kernelcast/examples/config" "$work/home/.config/kernelcast/config"
env -u XDG_CONFIG_HOME HOME="$work/home" "$to/bin/kcast" problem list >/dev/null || complain "kcast does not know its sample configuration"
echo '[kcastd]' >"$work/root/etc/kernelcast/kcastd.ini"
DESTDIR=$work/root PREFIX=/usr/local SYSCONFDIR=/etc scripts/install.sh "$bin" >"$work/log" 2>&1 || { cat "$work/log"; exit 1; }
[ "$(cat "$work/root/etc/kernelcast/kcastd.ini")" = '[kcastd]' ] || complain "configuration that was there is replaced"
exit $bad
